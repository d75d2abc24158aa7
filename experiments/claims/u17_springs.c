/* SPDX-License-Identifier: BSD-3-Clause */
/* U17 - U21: UFO-ViT's simulation, Eq. 10 - 16; U10 is in u01_xnorm.c. */
#include <math.h>
#include <stdio.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "common/report.h"

/* ---- U17 ---- */

/* In the second of two steps: the residual x_2 - x_1, which is the velocity, and the force on a
 * particle of unit mass, which is the change of velocity. */
static void second_step(const double x[3], double *residual, double *force)
{
    *residual = x[2] - x[1];
    *force = x[2] - 2 * x[1] + x[0];
}

static int judge_u17(const claim_run *run, verdict *v)
{
    static const double at_rest[3] = {1, 1, 2}, moving[3] = {0, 1, 2};
    double residual[2], force[2];
    (void)run;
    second_step(at_rest, &residual[0], &force[0]);
    second_step(moving, &residual[1], &force[1]);
    bool from_rest = residual[0] == force[0], always = residual[1] == force[1];
    v->kind = !from_rest ? VERDICT_FAILS : always ? VERDICT_HOLDS : VERDICT_HOLDS_IF;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "the particle is at rest before each step: the residual of the "
                                   "layer before is 0, or forgotten");
    verdict_set(&v->measured,
                "unit mass, Δt = 1, the last of three places after 1, 1, 2: velocity %g, force %g; "
                "after 0, 1, 2: velocity %g, force %g",
                residual[0], force[0], residual[1], force[1]);
    verdict_set(&v->bound, "a force that is the residual");
    if (v->kind != VERDICT_HOLDS)
        verdict_set(&v->counterexample,
                    "x = 0, 1, 2 in three layers: the residual is %g in both, and no force acts: "
                    "the velocity changes by %g",
                    residual[1], force[1]);
    return EXIT_PASS;
}

/* ---- U18 ---- */

enum { SPRING_WIDTH = 2 };

static double spring_potential(int width, const double *k, const double *x)
{
    double sum = 0;
    for (int c = 0; c < width; c++)
        sum += k[c] * x[c] * x[c] / 2;
    return sum;
}

/* Minus the derivatives of the potential, by differences over a distance of 2, which are exact for
 * squares. */
static void spring_force(int width, const double *k, const double *x, double *force)
{
    for (int c = 0; c < width; c++) {
        double above[SPRING_WIDTH], below[SPRING_WIDTH];
        for (int e = 0; e < width; e++) {
            above[e] = x[e] + (e == c);
            below[e] = x[e] - (e == c);
        }
        force[c] = (spring_potential(width, k, below) - spring_potential(width, k, above)) / 2;
    }
}

/* Eq. 13 taken literally. */
static double printed_force(int width, const double *k, const double *x)
{
    double sum = 0;
    for (int c = 0; c < width; c++)
        sum -= k[c] * x[c];
    return sum;
}

static int judge_u18(const claim_run *run, verdict *v)
{
    static const double line[2] = {3, 2}; /* k and x in one dimension */
    static const double k[SPRING_WIDTH] = {1, 1}, x[SPRING_WIDTH] = {1, -1};
    double single, force[SPRING_WIDTH], dot = printed_force(SPRING_WIDTH, k, x);
    (void)run;
    spring_force(1, &line[0], &line[1], &single);
    spring_force(SPRING_WIDTH, k, x, force);
    bool scalar = single == printed_force(1, &line[0], &line[1]);
    bool vector = force[0] == dot && force[1] == dot;
    v->kind = scalar && vector ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "one dimension, k = 3, x = 2: −k·x is %g, −dU/dx %g. Two, k = (1, 1), x = (1, −1): "
                "−k·x is %g, the force of U = ½Σk_c x_c² is (%g, %g)",
                printed_force(1, &line[0], &line[1]), single, dot, force[0], force[1]);
    verdict_set(&v->bound, "the force that the potential of Eq. 14 has, channel by channel");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "k = (1, 1), x = (1, −1): the dot product is %g, where U = %g is not at its "
                    "least and pulls with (%g, %g)",
                    dot, spring_potential(SPRING_WIDTH, k, x), force[0], force[1]);
    return EXIT_PASS;
}

/* ---- U19 ---- */

enum { CLUSTERS = 2 };
static const double strengths[CLUSTERS] = {1, 3};

/* The force of springs with centres. */
static double force_of_clusters(const double centres[CLUSTERS], double x)
{
    double sum = 0;
    for (int i = 0; i < CLUSTERS; i++)
        sum -= strengths[i] * (x - centres[i]);
    return sum;
}

/* The position at which the force is 0, by bisection: the force decreases. */
static double rest_of_clusters(const double centres[CLUSTERS])
{
    double below = -2, above = 2;
    for (int i = 0; i < 60; i++) {
        double middle = (below + above) / 2;
        if (force_of_clusters(centres, middle) > 0)
            below = middle;
        else
            above = middle;
    }
    return above;
}

static int judge_u19(const claim_run *run, verdict *v)
{
    static const double origin[CLUSTERS] = {0, 0}, apart[CLUSTERS] = {-1, 1};
    double printed = 0, one = force_of_clusters(origin, 1), two = force_of_clusters(apart, 1);
    (void)run;
    for (int i = 0; i < CLUSTERS; i++)
        printed -= strengths[i]; /* Eq. 15 at x = 1 */
    v->kind = one != printed ? VERDICT_FAILS : two == printed ? VERDICT_HOLDS : VERDICT_HOLDS_IF;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "Σk_ic_i = 0; for all k_i: all clusters have one centre, the "
                                   "origin");
    verdict_set(&v->measured,
                "k = 1 and 3, x = 1: Eq. 15 gives the force %g; clusters at 0 and 0 give %g, those "
                "at −1 and 1 %g. A particle rests at %.6g between the former, at %.6g between the "
                "latter",
                printed, one, two, rest_of_clusters(origin), rest_of_clusters(apart));
    verdict_set(&v->bound, "the force of Eq. 15");
    if (v->kind != VERDICT_HOLDS)
        verdict_set(&v->counterexample,
                    "clusters at −1 and 1 with k = 1 and 3: at x = 1 their force is %g, by Eq. 15 "
                    "%g",
                    two, printed);
    return EXIT_PASS;
}

/* ---- U20 ---- */

/* The share of its length that a particle starting at (1, 1) has in the channel of the larger k
 * after `steps` steps of Eq. 11, f(x) = -k x in each channel; *length: what remains of its length.
 */
static double share_of_larger(const double k[2], int steps, double *length)
{
    double x[2] = {1, 1};
    for (int i = 0; i < steps; i++)
        for (int c = 0; c < 2; c++)
            x[c] += -k[c] * x[c];
    *length = direct_norm(2, 1, x);
    return fabs(x[0]) / *length;
}

static int judge_u20(const claim_run *run, verdict *v)
{
    enum { STEPS = 24, PAIRS = 4 };
    static const double pairs[PAIRS][2] = {{4, 0.5}, {1.75, 0.5}, {1.25, 0.5}, {1, 0.5}};
    bool as_said = true, all = true;
    double shares[PAIRS], lengths[PAIRS];
    (void)run;
    fprintf(v->notes,
            "A particle (1, 1) after %d steps:\n\n| k | larger + smaller k | share of its length "
            "in the direction of the larger k | length |\n|---|---|---|---|\n",
            STEPS);
    for (int i = 0; i < PAIRS; i++) {
        shares[i] = share_of_larger(pairs[i], STEPS, &lengths[i]);
        bool aligned = shares[i] > 0.99;
        as_said = as_said && aligned == (pairs[i][0] + pairs[i][1] > 2);
        all = all && aligned;
        fprintf(v->notes, "| (%g, %g) | %g | %.4g | %.3g |\n", pairs[i][0], pairs[i][1],
                pairs[i][0] + pairs[i][1], shares[i], lengths[i]);
    }
    v->kind = all ? VERDICT_HOLDS : as_said ? VERDICT_HOLDS_IF : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "\"too large\" means that the largest and the smallest k are "
                                   "more than 2 together, and the particle is not at 0 in the "
                                   "direction of the largest");
    verdict_set(&v->measured,
                "after %d steps a particle has %.3g of its length in the direction of the larger k "
                "for k = (4, ½), %.3g for (1.75, ½), %.3g for (1.25, ½) and %.3g for (1, ½), where "
                "%.2g of it is left",
                STEPS, shares[0], shares[1], shares[2], shares[3], lengths[3]);
    verdict_set(&v->bound, "1: aligned in the direction of the largest k");
    if (v->kind != VERDICT_HOLDS)
        verdict_set(&v->counterexample,
                    "k = (1, ½), x = (1, 1): (0, ½), (0, ¼), …: aligned in the direction of the "
                    "smaller k (%g of the length in that of the larger), and every particle goes "
                    "to 0",
                    shares[3]);
    return EXIT_PASS;
}

/* ---- U21 ---- */

/* The distance between tokens that start at 1 and -1 after a step of Eq. 11, k = 1/2, with an
 * additional term for each. */
static double apart_after(double term_of_first, double term_of_second)
{
    const double k = 0.5, x[2] = {1, -1};
    return (x[0] - k * x[0] + term_of_first) - (x[1] - k * x[1] + term_of_second);
}

static double gelu(double x)
{
    return x * (1 + erf(x / sqrt(2))) / 2;
}

static int judge_u21(const claim_run *run, verdict *v)
{
    const double rounding = 8 * 0x1p-53;
    double free_of = apart_after(0, 0), driven = apart_after(3, 3);
    double network = apart_after(gelu(1), gelu(-1));
    (void)run;
    v->kind = fabs(network - driven) <= rounding ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "tokens 1 and −1, k = ½, after one step: %g apart without a further term, %g with "
                "g(t) = 3, %.6g with GELU(x) as the FFN",
                free_of, driven, network);
    verdict_set(&v->bound, "as far apart with the FFN as with some g(t)");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "tokens 1 and −1, k = ½: one step of Eq. 11 leaves them %g apart with every "
                    "g(t), and %.6g with FFN(x) = GELU(x)",
                    driven, network);
    return EXIT_PASS;
}

/* ---- The table ---- */

const claim ufo_vit_spring_claims[] = {
    {
        .id = "U17",
        .source = "UFO-ViT § 3.2, Eq. 10–12",
        .statement =
            "If we assume that x is the displacement of a certain object and n is time, then … "
            "x_{t+1} = x_t + f(x_t), f(x) = Δx/Δt. … The residual term expresses velocity, so this "
            "term represents the force term if the particle has a unit mass and Δt = 1.",
        .method = "Two steps of a particle of unit mass, Δt = 1: its velocity in the second, which "
                  "is the residual, and the force, mass times the change of velocity.",
        .corrected = "The force is the change of the residual from layer to layer, f(x_t) − "
                     "f(x_{t−1}). It is the residual itself where the particle was at rest before, "
                     "and 0 where two layers have the same residual. (Where "
                     "friction outweighs mass a velocity does express a force, but then by that "
                     "friction and not by a unit mass.)",
        .proof = "F = mΔv/Δt with m = Δt = 1 and v = Δx/Δt = f is Δv = f(x_t) − f(x_{t−1}), which "
                 "is f(x_t) if and only if f(x_{t−1}) = 0.",
        .judge = judge_u17,
    },
    {
        .id = "U18",
        .source = "UFO-ViT § 3.2, Eq. 13, 14",
        .statement = "In physics, Hooke's law is defined as the dot product of the elasticity "
                     "vector k and the displacement vector x. … F = −k·x, U = ½kx²",
        .method = "The printed dot product against the force of the potential, read channel by "
                  "channel (U = ½Σk_c x_c²), in one dimension and in two.",
        .corrected = "F_c = −k_c x_c in each channel c. The dot product is one number, and a force "
                     "only in one dimension.",
        .proof = "−∂U/∂x_c = −k_c x_c. A dot product is a number for vectors of any length, and it "
                 "is 0 for every x orthogonal to k, where U > 0 if x ≠ 0 and all k_c > 0.",
        .judge = judge_u18,
    },
    {
        .id = "U19",
        .source = "UFO-ViT Fig. 4, § 3.2, Eq. 15",
        .statement =
            "Each patch, represented as a particle, is interfered by parabolic potentials "
            "generated from h clusters. … The above formulation is generally used to "
            "approximate the potential energy of a molecule at x ≈ 0. For multiple molecules, "
            "the linearity of elasticity can be used: F = −Σ_{i=1}^{n} k_i·x",
        .method = "Two springs in one dimension: Eq. 15, the sum of forces with both centres at "
                  "the origin, and with centres at −1 and 1. What Eq. 9 says is U09.",
        .corrected = "F = −Σ k_i(x − c_i) for clusters at c_i: a particle rests at Σk_ic_i/Σk_i, "
                     "Σk_i ≠ 0. "
                     "By Eq. 15 it rests at 0 whatever the clusters are: n of them act as one with "
                     "Σk_i. That x ≈ 0 does not help: at 0 the clusters' force is Σk_ic_i.",
        .proof = "Forces add up. −Σk_i(x − c_i) = −(Σk_i)x + Σk_ic_i, which is Eq. 15 for every x "
                 "if and only if Σk_ic_i = 0, for all k_i only if all c_i = 0.",
        .judge = judge_u19,
    },
    {
        .id = "U20",
        .source = "UFO-ViT § 3.2",
        .statement = "Assume that a small number of k values are too large. … In this case, only "
                     "two outcomes can occur: 1. Collapsing case. The particles are aligned in the "
                     "direction of the largest k. 2. The relational features between particles are "
                     "neglected. A few particles with large x survive collapsing.",
        .method = "The first outcome is judged: 24 steps of Eq. 11 where f(x) is the force, −k_c "
                  "x_c in each channel (U10, U18), for a particle with two channels and four pairs "
                  "of k. The second names no quantity.",
        .corrected =
            "Let all k be above 0. A particle turns to the direction of the k with the largest |1 "
            "− k|, unless it is at 0 there: of the largest k if it and the smallest are more than "
            "2 together, of the smallest if they are less. It grows only if a k is above 2; if "
            "all are between 0 and 2, every particle goes to 0, a third outcome.",
        .proof = "After t steps a channel has (1 − k_c)^t times what it had: the channel with the "
                 "largest |1 − k_c| outgrows all others. It is that of the largest or of the "
                 "smallest k, |1 − k| being convex, and k_max − 1 > 1 − k_min if and only if k_max "
                 "+ k_min > 2. A particle without a part in that channel does not turn to it.",
        .judge = judge_u20,
    },
    {
        .id = "U21",
        .source = "UFO-ViT § 3.2, Eq. 16",
        .statement = "The FFN is static and is not dependent on the spatial dimension. Physically, "
                     "this type of function represents the driven force of the harmonic oscillator "
                     "equation. F = −k·x + g(t). This increases or reduces the amplitude "
                     "physically.",
        .method = "Two tokens of one channel and one step of Eq. 11 with f(x) = F: with a g(t) of "
                  "the time alone, as printed, and with GELU(x), the smallest FFN (weights 1, no "
                  "biases).",
        .corrected = "An FFN adds g(x_t): a term of each token's own, made by the same weights for "
                     "all. A driven force g(t) would be one for all tokens, and no difference "
                     "between two of them would depend on it. (With a g of each token's own every "
                     "F is of this form, g = F + k·x, and Eq. 16 says nothing.)",
        .proof = "With g(t) the difference of two tokens becomes (1 − k) times itself, whatever g "
                 "is. With GELU it becomes (1 − k)(x − y) + GELU(x) − GELU(y), and GELU(x) − "
                 "GELU(−x) = x, as x(Φ(x) + Φ(−x)) = x.",
        .judge = judge_u21,
    },
    {0},
};
