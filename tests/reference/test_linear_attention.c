/* SPDX-License-Identifier: BSD-3-Clause */
/* References of the linear operators: cases worked out by hand, and what random features tend to.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>

#include <math.h>
#include <stdlib.h>

#include "data.h"
#include "linear_attention.h"
#include "ratios.h"

static const double pi = 3.14159265358979323846;

/* By hand: an expression of a few f64 operations. */
enum { BY_HAND = 12, LARGEST = 64 };

/* One head without masks. */
typedef struct {
    int64_t n, n_k, d, dv;
} sizes;

static atn_status run(const atn_attention_desc *desc, sizes s, const double *q, const double *k,
                      const double *v, double *out)
{
    ref_attention_problem problem = {.desc = desc,
                                     .shape = {.batch = 1,
                                               .heads = 1,
                                               .tokens = s.n,
                                               .key_tokens = s.n_k,
                                               .dim = s.d,
                                               .value_dim = s.dv},
                                     .q = q,
                                     .k = k,
                                     .v = v};
    return ref_attention(&problem, out);
}

static void expect_answer(const char *what, const atn_attention_desc *desc, sizes s,
                          const double *q, const double *k, const double *v, const double *want)
{
    double out[LARGEST];
    cr_assert(s.n * s.dv <= LARGEST);
    atn_status status = run(desc, s, q, k, v, out);
    cr_expect(status == ATN_OK, "%s: %s", what, atn_status_name(status));
    if (status == ATN_OK)
        expect_within(what, s.n * s.dv, out, want, BY_HAND);
}

static void expect_status(const char *what, const atn_attention_desc *desc, sizes s,
                          const double *q, const double *k, const double *v, atn_status want)
{
    double out[LARGEST];
    atn_status status = run(desc, s, q, k, v, out);
    cr_expect(status == want, "%s: %s", what, atn_status_name(status));
}

/* One token: q^ and k^ are signs. 2 x -1, -3 x -4, 0.5 x 7: -1 + 1 + 1. */
Test(sima_reference, one_token)
{
    static const double q[] = {2, -3, 0.5}, k[] = {-1, -4, 7}, v[] = {5, -7};
    atn_attention_desc desc = {.op = ATN_SIMA};
    expect_answer("one token", &desc, (sizes){1, 1, 3, 2}, q, k, v, v);
    static const double opposed[] = {-1, 4, 7}, minus[] = {-5, 7};
    expect_answer("-1 - 1 + 1", &desc, (sizes){1, 1, 3, 2}, q, opposed, v, minus);
}

/* q = (1, 3), k = (-2, 2), v = (10, 30): l1 norms 4 and 4, l2 norms sqrt(10) and sqrt(8). */
Test(sima_reference, norms)
{
    static const double q[] = {1, 3}, k[] = {-2, 2}, v[] = {10, 30};
    atn_attention_desc desc = {.op = ATN_SIMA};
    sizes s = {2, 2, 1, 1};
    expect_answer("l1", &desc, s, q, k, v, (double[]){2.5, 7.5});
    desc.sima.norm = ATN_SIMA_L2;
    expect_answer("l2", &desc, s, q, k, v, (double[]){40 / sqrt(80), 120 / sqrt(80)});
    desc.sima.norm = ATN_SIMA_NONE;
    expect_answer("none", &desc, s, q, k, v, (double[]){40, 120});
    desc.sima = (atn_sima_options){.norm = ATN_SIMA_L1, .epsilon = 16};
    expect_answer("epsilon wins", &desc, s, q, k, v, (double[]){40. / 256, 120. / 256});
    desc.sima.epsilon = 3.75;
    expect_answer("epsilon loses", &desc, s, q, k, v, (double[]){2.5, 7.5});
    desc.sima.epsilon = 0;
    static const double key[] = {-2}, value[] = {10};
    expect_answer("one key", &desc, (sizes){2, 1, 1, 1}, q, key, value, (double[]){-2.5, -7.5});
}

/* A channel in which no query (no key) is other than 0. */
Test(sima_reference, dead_channel)
{
    static const double q[] = {0, 1, 0, 3}, k[] = {1, -2, 1, 2}, v[] = {10, 30};
    atn_attention_desc desc = {.op = ATN_SIMA};
    expect_status("0/0", &desc, (sizes){2, 2, 2, 1}, q, k, v, ATN_NONFINITE);
    expect_status("0/0", &desc, (sizes){2, 2, 2, 1}, k, q, v, ATN_NONFINITE);
    desc.sima.epsilon = 1e-12;
    expect_answer("0", &desc, (sizes){2, 2, 2, 1}, q, k, v, (double[]){2.5, 7.5});
    desc.causal = true;
    expect_status("causal", &desc, (sizes){2, 2, 2, 1}, q, k, v, ATN_ERR_VALUE);
}

/* One token: columns of T = k v^T are v_c k, so Y_c = gamma^2 cos(q, k) sign(v_c). Rows are k_r v,
 * so Y = gamma^2 sum_r q_r sign(k_r) / |q| v / |v|. */
Test(xnorm_reference, one_token)
{
    static const double q[] = {3, 4}, k[] = {4, 3}, v[] = {6, -8};
    double gamma = -0.5;
    atn_attention_desc desc = {.op = ATN_XNORM};
    sizes s = {1, 1, 2, 2};
    expect_answer("columns", &desc, s, q, k, v, (double[]){24. / 25, -24. / 25});
    desc.xnorm.axis = ATN_XNORM_ROWS;
    expect_answer("rows", &desc, s, q, k, v, (double[]){1.4 * 0.6, -1.4 * 0.8});
    desc.xnorm.gamma = constant(&gamma, 1, 1, 1);
    expect_answer("gamma", &desc, s, q, k, v, (double[]){0.35 * 0.6, -0.35 * 0.8});
    desc.xnorm.axis = ATN_XNORM_COLUMNS;
    expect_answer("gamma", &desc, s, q, k, v, (double[]){6. / 25, -6. / 25});
}

/* k = (1, 0), (0, 2), v = 3, 2: T = (3, 4)^T. */
Test(xnorm_reference, two_tokens)
{
    static const double q[] = {1, 0, 0, -2}, k[] = {1, 0, 0, 2}, v[] = {3, 2};
    atn_attention_desc desc = {.op = ATN_XNORM};
    sizes s = {2, 2, 2, 1};
    expect_answer("columns", &desc, s, q, k, v, (double[]){0.6, -0.8});
    desc.xnorm.epsilon = 4;
    expect_answer("epsilon wins over |q|", &desc, s, q, k, v, (double[]){0.15, -0.4});
    desc.xnorm.epsilon = 20;
    expect_answer("and over |T|", &desc, s, q, k, v, (double[]){3. / 400, -8. / 400});
    desc.xnorm = (atn_xnorm_options){.axis = ATN_XNORM_ROWS};
    expect_answer("rows", &desc, s, q, k, v, (double[]){1, -1});
    static const double zero[] = {1, 0, 0, 0};
    expect_status("zero row", &desc, s, zero, k, v, ATN_NONFINITE);
    desc.xnorm.epsilon = 1e-12;
    expect_answer("zero row", &desc, s, zero, k, v, (double[]){1, 0});
}

/* phi(0) = 1: equal weights; phi(-1) = 1/e, phi(1) = 2. */
Test(elu_reference, by_hand)
{
    static const double zeros[4] = {0}, k[] = {1, -1}, v[] = {10, 4};
    atn_attention_desc desc = {.op = ATN_ELU};
    expect_answer("mean", &desc, (sizes){2, 2, 2, 1}, zeros, zeros, v, (double[]){7, 7});
    desc.elu.epsilon = 1;
    expect_answer("epsilon", &desc, (sizes){2, 2, 2, 1}, zeros, zeros, v, (double[]){5.6, 5.6});
    desc.elu.epsilon = 0.5;
    double y = (20 + 4 * exp(-1)) / (2.5 + exp(-1));
    expect_answer("both sides", &desc, (sizes){1, 2, 1, 1}, zeros, k, v, &y);
    desc.elu.form = ATN_ELU_NAIVE;
    expect_answer("naive", &desc, (sizes){1, 2, 1, 1}, zeros, k, v, &y);
    desc.elu.epsilon = 0;
    static const double near[] = {0x1p-6, -0x1p-6};
    double up = 1 + 0x1p-6, down = exp(-0x1p-6);
    y = (10 * up + 4 * down) / (up + down);
    expect_answer("near 0", &desc, (sizes){1, 2, 1, 1}, zeros, near, v, &y);
    desc.causal = true;
    expect_answer("causal", &desc, (sizes){2, 2, 1, 1}, zeros, k, v,
                  (double[]){10, (20 + 4 * exp(-1)) / (2 + exp(-1))});
}

/* Weights rho(q).rho(k): one channel leaves the keys' softmax (1, 3) / 4, one key leaves v. */
Test(efficient_reference, by_hand)
{
    const double one[] = {0, log(3)}, v[] = {8, 16}, two[] = {0, 0, 0, log(3)};
    atn_attention_desc desc = {.op = ATN_EFFICIENT};
    expect_answer("one channel", &desc, (sizes){2, 2, 1, 1}, one, one, v, (double[]){14, 14});
    expect_answer("one key", &desc, (sizes){1, 1, 2, 2}, one, two, v, v);
    /* rho(q) = (1, 3) / 4; channel 0 means v, channel 1 is (v_1 + 3 v_2) / 4 */
    expect_answer("two channels", &desc, (sizes){1, 2, 2, 1}, one, two, v,
                  (double[]){0.25 * 12 + 0.75 * 14});
    static const double large[] = {20000, 0, -20000, 0};
    expect_answer("far apart", &desc, (sizes){2, 2, 2, 1}, large, large, v, (double[]){8, 12});
    desc.causal = true;
    expect_status("causal", &desc, (sizes){2, 2, 1, 1}, one, one, v, ATN_ERR_VALUE);
}

/* One token: q^ and k^ are signs, A_ab = softmax_b(tau sign(q_a) sign(k_b)). */
Test(xca_reference, by_hand)
{
    static const double q[] = {2, -3}, k[] = {5, -1}, v[] = {8, 24};
    double tau = 0, up = exp(0.5) / (exp(0.5) + exp(-0.5));
    atn_attention_desc desc = {.op = ATN_XCA, .xca.temperature = constant(&tau, 1, 1, 1)};
    sizes s = {1, 1, 2, 2};
    expect_answer("tau = 0: the channels' mean", &desc, s, q, k, v, (double[]){16, 16});
    tau = 0.5;
    double y[] = {up * 8 + (1 - up) * 24, (1 - up) * 8 + up * 24};
    expect_answer("signs", &desc, s, q, k, v, y);
    desc.xca = (atn_xca_options){.epsilon = 4}; /* over 2 and 3, not over 5, over 1 */
    const double a[] = {exp(0.5), exp(-0.125), exp(-0.75), exp(0.1875)};
    double z[] = {(a[0] * 8 + a[1] * 24) / (a[0] + a[1]), (a[2] * 8 + a[3] * 24) / (a[2] + a[3])};
    expect_answer("epsilon", &desc, s, q, k, v, z);
    expect_status("three values", &desc, (sizes){1, 1, 2, 3}, q, k, (double[3]){0}, ATN_ERR_SHAPE);
}

/* Two tokens tell rows of A from columns: q^ = (3, 4) / 5, (1, 0); k^ = (1, 0), (0, 1). */
Test(xca_reference, rows_are_the_queries)
{
    static const double q[] = {3, 2, 4, 0}, k[] = {7, 0, 0, 9}, v[] = {1, 10, 100, 1000};
    atn_attention_desc desc = {.op = ATN_XCA};
    double y[4];
    for (int i = 0; i < 2; i++) {
        y[2 * i] = (exp(0.6) * v[2 * i] + exp(0.8) * v[2 * i + 1]) / (exp(0.6) + exp(0.8));
        y[2 * i + 1] = (exp(1) * v[2 * i] + v[2 * i + 1]) / (exp(1) + 1);
    }
    expect_answer("A", &desc, (sizes){2, 2, 2, 2}, q, k, v, y);
}

/* One frequency: the weight of a pair is cos(sqrt(2 s) w.(q - k)). */
Test(rff_reference, one_frequency)
{
    double w[] = {1, 2, 0, -1};
    const double q[] = {pi / 3, 0, 0, 0}, k[4] = {0, 0, 0, pi / 6}, v[] = {6};
    atn_attention_desc desc = {.op = ATN_RFF,
                               .scale = ATN_SCALE_VALUE,
                               .scale_value = 0.5,
                               .rff.projection = constant(w, 1, 1, 4)};
    sizes s = {1, 1, 4, 1}; /* w.(q - k) = pi/3 + pi/6 */
    expect_answer("2 s = 1/4", &desc, s, q, q, v, v);
    desc.scale_value = 0.125;
    expect_answer("2 s = 1/4", &desc, s, q, k, v, (double[]){6 * cos(pi / 4)});
    desc.scale = ATN_SCALE_HEAD; /* 2 s = 1 / sqrt(4) */
    expect_answer("head", &desc, s, q, k, v, (double[]){6 * cos(pi / 2 / sqrt(2))});
    desc.scale_value = 0;
    desc.rff.projection = constant(w, 1, 2, 2);
    static const double value[] = {6};
    double root = pow(2, -0.25); /* w = (1, 2) and (0, -1), q - k = (pi/3, 0) */
    expect_answer("two frequencies", &desc, (sizes){1, 1, 2, 1}, q, k, value,
                  (double[]){3 * cos(root * pi / 3) + 3});
}

/* The embedding's width is heads d: 4 heads of width 4, 2 s = 1 / sqrt(16). */
Test(rff_reference, embedding_scale)
{
    double w[] = {1, 0, 0, 0};
    double q[16] = {pi}, k[16] = {0}, v[] = {6, 6, 6, 6}, out[4];
    atn_attention_desc desc = {
        .op = ATN_RFF, .scale = ATN_SCALE_EMBED, .rff.projection = constant(w, 1, 1, 4)};
    ref_attention_problem problem = {
        .desc = &desc, .shape = {1, 4, 1, 4, 1, 1}, .q = q, .k = k, .v = v};
    cr_assert(ref_attention(&problem, out) == ATN_OK);
    expect_within("embed", 4, out, (double[]){6 * cos(pi / 2), 6, 6, 6}, BY_HAND);
}

/* M = 1: phi(q) cancels; the weights are those of exp(w k - k^2/2). */
Test(performer_reference, one_feature)
{
    double w = 1;
    static const double q[] = {0.7}, k[] = {0, 1}, v[] = {3, 5};
    const double e = exp(0.5);
    atn_attention_desc desc = {
        .op = ATN_PERFORMER, .performer.projection = constant(&w, 1, 1, 1), .logit_scale = 1};
    atn_performer_options *o = &desc.performer;
    sizes s = {1, 2, 1, 1};
    expect_answer("exp", &desc, s, q, k, v, (double[]){(3 + 5 * e) / (1 + e)});
    o->stabilise = true;
    expect_answer("t cancels", &desc, s, q, k, v, (double[]){(3 + 5 * e) / (1 + e)});
    o->feature_epsilon = 0.5; /* and t = 1 for the keys */
    double first = exp(-1) + 0.5, second = exp(-0.5) + 0.5;
    expect_answer("t and epsilon", &desc, s, q, k, v,
                  (double[]){(3 * first + 5 * second) / (first + second)});
    o->denominator_epsilon = 0.25;
    expect_answer("both epsilons", &desc, s, q, k, v,
                  (double[]){(3 * first + 5 * second) / (first + second + 0.25)});
    *o = (atn_performer_options){
        .projection = o->projection, .features = ATN_FEATURES_RELU, .feature_epsilon = 0.5};
    expect_answer("relu", &desc, s, q, k, v, (double[]){(3 * 0.5 + 5 * 1.5) / 2});
    o->denominator_epsilon = 1;
    w = -1;
    expect_answer("clipped", &desc, s, q, k, v, (double[]){(3 + 5) * 0.5 / 2});
    desc.logit_scale = 0; /* 1 / sqrt(d) = 1 */
    w = 1;
    expect_answer("1/sqrt(d)", &desc, s, q, k, v, (double[]){(3 * 0.5 + 5 * 1.5) / 3});
}

/* w = 1 and -1, c = 4 (x' = 2 x), q = 1: t = 2, and k = 1, -1/2: t = 2 over all of w.k'. */
Test(performer_reference, two_features)
{
    double w[] = {1, -1};
    static const double q[] = {1}, k[] = {1, -0.5}, v[] = {3, 5};
    const double root = sqrt(2), f = 0.125, g = 0.5;
    const double phi_q[] = {(exp(-2) + f) / root, (exp(-6) + f) / root};
    const double phi_1[] = {(exp(-2) + f) / root, (exp(-6) + f) / root};
    const double phi_2[] = {(exp(-3.5) + f) / root, (exp(-1.5) + f) / root};
    double a = phi_q[0] * phi_1[0] + phi_q[1] * phi_1[1];
    double b = phi_q[0] * phi_2[0] + phi_q[1] * phi_2[1];
    atn_attention_desc desc = {.op = ATN_PERFORMER,
                               .logit_scale = 4,
                               .performer = {.projection = constant(w, 1, 2, 1),
                                             .stabilise = true,
                                             .feature_epsilon = f,
                                             .denominator_epsilon = g}};
    expect_answer("all of it", &desc, (sizes){1, 2, 1, 1}, q, k, v,
                  (double[]){(3 * a + 5 * b) / (a + b + g * (phi_q[0] + phi_q[1]))});
}

/* q = k = 1 throughout: the weights are the cosines. */
Test(cosformer_reference, by_hand)
{
    static const double ones[] = {1, 1, 1, 1}, v[] = {3, 5, 7, 11};
    const double c = cos(pi / 4), e = cos(pi / 8), t = cos(pi / 6);
    atn_attention_desc desc = {.op = ATN_COSFORMER, .cosformer.epsilon = 1e-6};
    atn_cosformer_options *o = &desc.cosformer;
    sizes two = {2, 2, 1, 1}, three = {3, 3, 1, 1}, four = {4, 4, 1, 1};
    expect_answer("M = 2", &desc, two, ones, ones, v,
                  (double[]){(3 + 5 * c) / (1 + c), (3 * c + 5) / (1 + c)});
    expect_answer("M = 3, the longer of both", &desc, (sizes){1, 3, 1, 1}, ones, ones, v,
                  (double[]){(3 + 5 * t + 3.5) / (1.5 + t)});
    o->length = 4;
    expect_answer("M = 4", &desc, two, ones, ones, v,
                  (double[]){(3 + 5 * e) / (1 + e), (3 * e + 5) / (1 + e)});
    desc.causal = true;
    expect_answer("causal", &desc, two, ones, ones, v, (double[]){3, (3 * e + 5) / (1 + e)});
    desc.causal = false;
    *o = (atn_cosformer_options){.weighting = ATN_COSINE_2D, .height = 1, .width = 3};
    expect_answer("1 x 3", &desc, three, ones, ones, v,
                  (double[]){(3 + 5 * t + 3.5) / (1.5 + t), (5 + 10 * t) / (1 + 2 * t),
                             (1.5 + 5 * t + 7) / (1.5 + t)});
    o->height = o->width = 2;
    double square = 1 + 2 * c + c * c;
    expect_answer("2 x 2", &desc, four, ones, ones, v,
                  (double[]){(3 + c * (5 + 7) + c * c * 11) / square,
                             (5 + c * (3 + 11) + c * c * 7) / square,
                             (7 + c * (3 + 11) + c * c * 5) / square,
                             (11 + c * (5 + 7) + c * c * 3) / square});
    expect_status("no 2 x 2 grid", &desc, three, ones, ones, v, ATN_ERR_SHAPE);
    o->weighting = ATN_COSINE_NONE;
    expect_answer("none", &desc, two, ones, ones, v, (double[]){4, 4});
}

/* ReLU: (1, -2).(3, 4) counts 3; a query without a positive channel gives 0. */
Test(cosformer_reference, zero_rows)
{
    static const double q[] = {1, -2, -1, 0}, k[] = {3, 4, 1, -5}, v[] = {8, 4};
    atn_attention_desc desc = {.op = ATN_COSFORMER,
                               .cosformer = {.weighting = ATN_COSINE_NONE, .epsilon = 1e-6}};
    sizes s = {2, 2, 2, 1};
    expect_answer("zero row", &desc, s, q, k, v, (double[]){(3 * 8 + 4) / 4., 0});
    desc.cosformer.epsilon = 8;
    expect_answer("epsilon", &desc, s, q, k, v, (double[]){(3 * 8 + 4) / 8., 0});
    desc.cosformer.epsilon = 0;
    expect_status("0/0", &desc, s, q, k, v, ATN_NONFINITE);
}

/* ---- What random features tend to ---- */

enum { N = 6, D = 3, DRAWS = 24 };

typedef void target(const double *q, const double *k, double *want);

/* exp(-|q - k|^2 / 2) */
static void gaussian(const double *q, const double *k, double *want)
{
    for (int p = 0; p < N * N; p++) {
        double squared = 0;
        for (int c = 0; c < D; c++)
            squared += pow(q[p / N * D + c] - k[p % N * D + c], 2);
        want[p] = exp(-squared / 2);
    }
}

/* softmax(q.k) */
static void softmax(const double *q, const double *k, double *want)
{
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int j = 0; j < N; j++) {
            double dot = 0;
            for (int c = 0; c < D; c++)
                dot += q[i * D + c] * k[j * D + c];
            sum += want[i * N + j] = exp(dot);
        }
        for (int j = 0; j < N; j++)
            want[i * N + j] /= sum;
    }
}

/* The root mean square error of the weights over all pairs and draws of m features. */
static double feature_error(atn_operator op, target *limit, int64_t m)
{
    double q[N * D], k[N * D], identity[N * N] = {0}, want[N * N], got[N * N], squared = 0;
    double *w = data_allocate(m * D);
    for (int i = 0; i < N; i++)
        identity[i * N + i] = 1;
    for (int draw = 0; draw < DRAWS; draw++) {
        data_normal(10 + (uint64_t)draw, N * D, q);
        data_normal(50 + (uint64_t)draw, N * D, k);
        data_normal(90 + (uint64_t)draw, m * D, w);
        for (int i = 0; i < N * D; i++)
            q[i] *= 0.35, k[i] *= 0.35;
        atn_tensor projection = constant(w, 1, m, D);
        atn_attention_desc desc = {.op = op,
                                   .logit_scale = 1,
                                   .scale = ATN_SCALE_VALUE,
                                   .scale_value = 0.5,
                                   .performer = {.projection = projection, .stabilise = true},
                                   .rff = {.projection = projection}};
        limit(q, k, want);
        cr_assert(run(&desc, (sizes){N, N, D, N}, q, k, identity, got) == ATN_OK);
        for (int p = 0; p < N * N; p++)
            squared += pow(got[p] - want[p], 2) / (DRAWS * N * N);
    }
    free(w);
    return sqrt(squared);
}

/* Independent features: the error falls as M^-1/2. Over 64 times as many features the quotient of
 * two measured errors is 8; each is known to about (2 DRAWS)^-1/2, 15 percent, so 1.4 is twice the
 * quotient's standard deviation. */
static void expect_root_rate(const char *what, atn_operator op, target *limit, double bound)
{
    double few = feature_error(op, limit, 64), many = feature_error(op, limit, 4096);
    cr_log_info("%s: error sqrt(M) is %g at M = 64, %g at 4096", what, few * 8, many * 64);
    cr_expect(few / many > 8 / 1.4 && few / many < 8 * 1.4, "%s: %g to %g", what, few, many);
    cr_expect(many * 64 < bound, "%s: %g", what, many * 64);
}

/* A weight is the mean of M cosines, each of variance (1 - K^2)^2 / 2 <= 1/2. */
Test(rff_reference, tends_to_the_gaussian)
{
    expect_root_rate("rff", ATN_RFF, gaussian, sqrt(0.5));
}

/* A feature product exp(w.(q + k) - ...) has variance SM(q, k)^2 (exp(|q + k|^2) - 1), SM =
 * exp(q.k) (Choromanski et al. 2021, Lemma 2). |q + k|^2 is 0.74 on average here and softmax
 * weights are 1/6: error sqrt(M) is about 0.17. Longer tokens have heavy tails, which 24 draws do
 * not measure. */
Test(performer_reference, tends_to_softmax)
{
    expect_root_rate("performer", ATN_PERFORMER, softmax, 0.34);
}
