/* SPDX-License-Identifier: BSD-3-Clause */
/* S31 - S33: symmetry and semi-definiteness of attention matrices, and the conditions for the
 * Nystroem form. */
#include <data.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "common/report.h"

/* ---- S31, S32: softmax attention of two tokens of width 1, K = Q ---- */

enum { GRID_MOST = 2 }; /* tokens -2 ... 2 */

/* S, and the smaller eigenvalue of the symmetric part of I - S. */
typedef struct {
    double s[4], least;
} softmax_pair;

static int make_softmax_pair(const claim_run *run, double first, double second, softmax_pair *pair)
{
    static const double identity[4] = {1, 0, 0, 1};
    const double q[2] = {first, second};
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFTMAX, ATN_F64);
    int code = direct_forward(run, &desc, 2, 1, 2, q, NULL, identity, pair->s);
    double diagonal[2] = {1 - pair->s[0], 1 - pair->s[3]};
    pair->least = (diagonal[0] + diagonal[1]) / 2 -
                  hypot((diagonal[0] - diagonal[1]) / 2, (pair->s[1] + pair->s[2]) / 2);
    return code;
}

static double asymmetry(const softmax_pair *pair)
{
    return fabs(pair->s[1] - pair->s[2]);
}

/* Counts over all pairs of the grid. Row sums are equal if and only if |q_1| = |q_2|; exceptions
 * are pairs that contradict what is proved. nonnegative: I - S has no negative eigenvalue; they are
 * 0 and 2 - S_11 - S_22. */
typedef struct {
    int pairs, equal, symmetric, semidefinite, nonnegative, exceptions;
} pair_count;

static int count_pairs(const claim_run *run, pair_count *c)
{
    const double rounding = 16 * atn_dtype_roundoff(ATN_F64);
    *c = (pair_count){0};
    for (int i = -GRID_MOST; i <= GRID_MOST; i++)
        for (int j = -GRID_MOST; j <= GRID_MOST; j++) {
            softmax_pair pair;
            int code = make_softmax_pair(run, i, j, &pair);
            if (code != EXIT_PASS)
                return code;
            bool equal = abs(i) == abs(j), symmetric = asymmetry(&pair) <= rounding,
                 semidefinite = pair.least >= -rounding;
            c->pairs++;
            c->equal += equal;
            c->symmetric += symmetric;
            c->semidefinite += semidefinite;
            c->nonnegative += 2 - pair.s[0] - pair.s[3] >= -rounding;
            c->exceptions += symmetric != equal || semidefinite != equal;
        }
    return EXIT_PASS;
}

/* Makes the counts, and the smallest example: the tokens 0 and 1. */
static int make_examples(const claim_run *run, const char *id, pair_count *c, softmax_pair *example)
{
    int code = count_pairs(run, c);
    if (code == EXIT_PASS)
        code = make_softmax_pair(run, 0, 1, example);
    if (code != EXIT_PASS || c->exceptions == 0)
        return code;
    report_error("%s: %d of %d softmax matrices are not symmetric or semi-definite where that is "
                 "proved, or are where it is excluded",
                 id, c->exceptions, c->pairs);
    return EXIT_CHECK;
}

static int judge_s31(const claim_run *run, verdict *v)
{
    pair_count c;
    softmax_pair example;
    int code = make_examples(run, "S31", &c, &example);
    if (code != EXIT_PASS)
        return code;
    v->kind = c.symmetric == c.pairs ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "K = Q, d = 1, two tokens from {−%d, ..., %d}: %d of %d matrices are symmetric, "
                "those with |q₁| = |q₂|; |S₁₂ − S₂₁| for the tokens 0 and 1: %.4f",
                GRID_MOST, GRID_MOST, c.symmetric, c.pairs, asymmetry(&example));
    verdict_set(&v->bound, "S = Sᵀ");
    verdict_set(&v->counterexample,
                "K = Q, d = 1, q = (0, 1): S = [1/2 1/2; 1/(1 + e) e/(1 + e)] = [%.4f %.4f; %.4f "
                "%.4f]",
                example.s[0], example.s[1], example.s[2], example.s[3]);
    return EXIT_PASS;
}

static int judge_s32(const claim_run *run, verdict *v)
{
    pair_count c;
    softmax_pair example;
    int code = make_examples(run, "S32", &c, &example);
    if (code != EXIT_PASS)
        return code;
    /* x^T (I - S) x at x = (2, 3) */
    const double *s = example.s, form = 4 * (1 - s[0]) - 6 * (s[1] + s[2]) + 9 * (1 - s[3]);
    v->kind = c.semidefinite == c.pairs && form >= 0 ? VERDICT_HOLDS
              : c.nonnegative == c.pairs             ? VERDICT_HOLDS_IF
                                                     : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition,
                    "'semi-definite' is meant in the inner product xᵀDy, in which L_rw is "
                    "self-adjoint, or of its eigenvalues, as the cited tutorial has to be read; or "
                    "all row sums of A are equal");
    verdict_set(&v->measured,
                "K = Q, d = 1, two tokens from {−%d, ..., %d}: xᵀL_rw x ≥ 0 for all x in %d of "
                "%d matrices, those with |q₁| = |q₂|; for the tokens 0 and 1 the symmetric part "
                "has the eigenvalue %.4f. The eigenvalues of L_rw, 0 and 2 − S₁₁ − S₂₂ = %.4f, "
                "are not negative, as the paper concludes, for %d of %d matrices",
                GRID_MOST, GRID_MOST, c.semidefinite, c.pairs, example.least, 2 - s[0] - s[3],
                c.nonnegative, c.pairs);
    verdict_set(&v->bound, "xᵀL_rw x ≥ 0");
    verdict_set(&v->counterexample,
                "K = Q, d = 1, q = (0, 1): L_rw = [1/2 −1/2; −p p], p = 1/(1 + e); x = (2, 3): "
                "xᵀL_rw x = 3p − 1 = %.4f",
                form);
    return EXIT_PASS;
}

/* ---- S33: the conditions for the Nystroem form ---- */

enum { MATRIX_MOST = 4, RANDOM_MATRICES = 1000 };

/* An n x n matrix of whole numbers, with the first m (1 or 2) rows and columns as landmarks. */
typedef struct {
    int n, m;
    int64_t s[MATRIX_MOST * MATRIX_MOST];
} whole_matrix;

static int64_t determinant_of_landmarks(const whole_matrix *w)
{
    const int64_t *s = w->s;
    return w->m == 1 ? s[0] : s[0] * s[w->n + 1] - s[1] * s[w->n];
}

/* Whether det(A) S = C adj(A) R, where C and R are the columns and rows of the landmarks; exact for
 * entries of at most 2^15. If det(A) is not 0, that is S = C A^-1 R. */
static bool is_reproduced(const whole_matrix *w)
{
    const int64_t *s = w->s, det = determinant_of_landmarks(w);
    int n = w->n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int64_t product = s[i * n] * s[j];
            if (w->m == 2)
                product = s[i * n] * (s[n + 1] * s[j] - s[1] * s[n + j]) +
                          s[i * n + 1] * (s[0] * s[n + j] - s[n] * s[j]);
            if (det * s[i * n + j] != product)
                return false;
        }
    return true;
}

static bool is_symmetric(const whole_matrix *w)
{
    for (int i = 0; i < w->n; i++)
        for (int j = 0; j < i; j++)
            if (w->s[i * w->n + j] != w->s[j * w->n + i])
                return false;
    return true;
}

static int64_t quadratic_form(const whole_matrix *w, const int64_t *x)
{
    int64_t form = 0;
    for (int i = 0; i < w->n; i++)
        for (int j = 0; j < w->n; j++)
            form += x[i] * w->s[i * w->n + j] * x[j];
    return form;
}

/* Whether x^T S x takes both signs for x with entries -3 ... 3. */
static bool is_indefinite(const whole_matrix *w)
{
    enum { ENTRIES = 7 };
    bool negative = false, positive = false;
    for (int code = 0; code < ENTRIES * ENTRIES * ENTRIES * ENTRIES; code++) {
        int64_t x[MATRIX_MOST];
        for (int i = 0, rest = code; i < MATRIX_MOST; i++, rest /= ENTRIES)
            x[i] = rest % ENTRIES - ENTRIES / 2;
        int64_t form = quadratic_form(w, x);
        negative |= form < 0;
        positive |= form > 0;
    }
    return negative && positive;
}

/* S = L R, 4 x 2 by 2 x 4, with entries -3 ... 3: of rank 2 if A is not singular. */
static void draw_product(uint64_t *state, whole_matrix *w)
{
    enum { N = MATRIX_MOST, RANK = 2 };
    int64_t left[N * RANK], right[RANK * N];
    for (int i = 0; i < N * RANK; i++) {
        left[i] = (int64_t)(data_next(state) >> 8) % 7 - 3;
        right[i] = (int64_t)(data_next(state) >> 8) % 7 - 3;
    }
    *w = (whole_matrix){.n = N, .m = RANK};
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int l = 0; l < RANK; l++)
                w->s[i * N + j] += left[i * RANK + l] * right[l * N + j];
}

/* Counts over random matrices with det(A) other than 0. lawless: reproduced, though neither
 * symmetric nor semi-definite; raised: reproduced after adding 1 to the last entry, which makes the
 * rank 3. */
typedef struct {
    int matrices, reproduced, lawless, raised; /* lawless: not symmetric, and indefinite */
} whole_count;

static whole_count count_whole_matrices(uint64_t seed)
{
    whole_count c = {0};
    while (c.matrices < RANDOM_MATRICES) {
        whole_matrix w;
        draw_product(&seed, &w);
        if (determinant_of_landmarks(&w) == 0)
            continue;
        bool reproduced = is_reproduced(&w);
        c.matrices++;
        c.reproduced += reproduced;
        c.lawless += reproduced && !is_symmetric(&w) && is_indefinite(&w);
        w.s[MATRIX_MOST * MATRIX_MOST - 1]++;
        c.raised += is_reproduced(&w);
    }
    return c;
}

static int judge_s33(const claim_run *run, verdict *v)
{
    /* three times the softmax attention of q = (1, 1), k = (0, ln 2) */
    static const whole_matrix smallest = {.n = 2, .m = 1, .s = {1, 2, 1, 2}};
    static const double q[2] = {1, 1}, k[2] = {0, 0.693147180559945309}, identity[4] = {1, 0, 0, 1};
    double softmax[4], difference = 0;
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFTMAX, ATN_F64);
    int code = direct_forward(run, &desc, 2, 1, 2, q, k, identity, softmax);
    if (code != EXIT_PASS)
        return code;
    for (int i = 0; i < 4; i++)
        difference = direct_worst(difference, fabs(3 * softmax[i] - (double)smallest.s[i]));
    bool normalised = difference <= 16 * atn_dtype_roundoff(ATN_F64);
    bool lawless = !is_symmetric(&smallest) && is_indefinite(&smallest);
    bool refuted = is_reproduced(&smallest) && lawless && normalised;
    whole_count c = count_whole_matrices(run->seed);
    v->kind = refuted ? VERDICT_FAILS : VERDICT_HOLDS;
    verdict_set(&v->measured,
                "of %d random whole-number 4 × 4 matrices of rank 2 with det A ≠ 0, m = 2, Ŝ = S "
                "in %d, of which %d are neither symmetric nor semi-definite; with 1 added to S₄₄, "
                "rank 3, in %d",
                c.matrices, c.reproduced, c.lawless, c.raised);
    verdict_set(&v->bound, "Ŝ = S, exactly");
    verdict_set(&v->counterexample,
                "S = [1 2; 1 2]/3, softmax attention of q = (1, 1), k = (0, ln 2), d = 1: rows sum "
                "to 1, S ≠ Sᵀ, and xᵀSx is %" PRId64 "/3 for x = (1, 0), %" PRId64
                "/3 for x = (3, −2). m = 1: [1; 1]/3 · (1/3)⁻¹ · [1 2]/3 = S",
                quadratic_form(&smallest, (const int64_t[]){1, 0}),
                quadratic_form(&smallest, (const int64_t[]){3, -2}));
    v->certified = refuted ? CERTIFIED_YES : CERTIFIED_NO;
    verdict_set(&v->certificate, refuted ? "whole numbers: det(A)·S = [A; C] adj(A) [A B], entry "
                                           "by entry, without rounding"
                                         : "the example is not reproduced");
    return EXIT_PASS;
}

/* ---- The table ---- */

const claim soft_symmetry_claims[] = {
    {
        .id = "S31",
        .source = "IJCV § 3.1; NeurIPS § 3.1",
        .statement =
            "IJCV: To maintain the symmetric properties of the attention matrix as "
            "defined in Eq. (3) [softmax of scaled dot-products], we opt for identical "
            "projection matrices W_q and W_k in Eq. (1), effectively setting Q = K. "
            "NeurIPS: To preserve the symmetric property of attention matrix as in Eq "
            "(3), we set the project matrices W_q and W_k in Eq (1) identical (i.e., Q = K).",
        .method = "Softmax attention with K = Q of all pairs of tokens −2, ..., 2, d = 1.",
        .corrected =
            "With K = Q the logits of Eq. (3) are symmetric, and so is E, E_ij = exp(q_i·q_j/√d_e), "
            "the kernel of which § 3.1 and Tab. 8 speak. Softmax attention need not be: S = D⁻¹E, "
            "D the row sums of E, is symmetric if and only if all row sums of E are equal; for n = "
            "2, if and only if ‖q₁‖ = ‖q₂‖. It is always similar to the symmetric D^-½ED^-½. With "
            "Eq. 4, to which the sentence leads, K = Q does make the matrix symmetric (S01).",
        .proof =
            "S_ij = S_ji says E_ij/D_i = E_ij/D_j, and E_ij > 0, so D_i = D_j for all i and j. For "
            "n = 2, D₁ − D₂ = exp(‖q₁‖²/√d_e) − exp(‖q₂‖²/√d_e). D^½SD^-½ = D^-½ED^-½.",
        .judge = judge_s31,
    },
    {
        .id = "S32",
        .source = "IJCV § 3.3, proof of Prop. 3",
        .statement = "According to (Von Luxburg, 2007), L_rw [= I − D⁻¹A] is a real semi-definite "
                     "matrix, so all the eigenvalue of L_rw is non-negative.",
        .method = "The symmetric part of I − S for softmax attention with K = Q of all pairs of "
                  "tokens −2, ..., 2, d = 1.",
        .corrected =
            "For symmetric A with positive entries and row sums D the eigenvalues of L_rw are real "
            "and not negative, since it is similar to the semi-definite I − D^-½AD^-½. L_rw itself "
            "is semi-definite, xᵀL_rw x ≥ 0 for every x, if and only if all row sums are equal, "
            "that is, if and only if it is symmetric (S31). In the inner product xᵀDy it is "
            "self-adjoint and semi-definite. The conclusion about eigenvalues is right.",
        .proof =
            "Row sums of S = D⁻¹A are 1, so 1ᵀL_rw 1 = 0. Were xᵀL_rw x ≥ 0 for all x, 1 would be "
            "a minimum, and (L_rw + L_rwᵀ)1 = 0; with L_rw 1 = 0 also Sᵀ1 = 1, that is Au = 1 for "
            "u_i = 1/D_i, so u = D⁻¹Au: each u_i is a mean of all u_j with positive weights, at "
            "the largest u_i too, so they are all equal. Conversely S is then symmetric with "
            "eigenvalues of at most 1. xᵀDL_rw x = xᵀ(D − A)x = ½Σ A_ij(x_i − x_j)² ≥ 0. D^-½AD^-½ "
            "has the eigenvalues of S, at most ‖S‖_∞ = 1.",
        .judge = judge_s32,
    },
    {
        .id = "S33",
        .source = "IJCV § 3.2; NeurIPS § 3.2",
        .statement = "We make this choice because our S is positive semi-definite (i.e., a Gram "
                     "matrix) without follow-up normalization which are all necessary conditions "
                     "for Nyström.",
        .method = "Matrices of whole numbers, compared without rounding: the smallest that is "
                  "softmax attention, and 1000 random ones of rank 2, with two landmarks.",
        .corrected =
            "Read as conditions for Ŝ of Eq. 7 to approximate S; the derivation in App. A does use "
            "a Gram matrix. For any real S = [A B; C D], square or not, [A; C]A†[A B] = S if and "
            "only if rank(A) "
            "= rank(S): S need not be symmetric nor semi-definite, and may be normalised, for "
            "dividing its rows by positive numbers changes neither rank. Semi-definiteness is "
            "sufficient for 0 ⪯ S − Ŝ (S04), where the ranks differ.",
        .proof =
            "If the ranks are equal, the columns of B and the rows of [C D] are combinations of "
            "those of A and of [A B]: B = AX, C = YA, D = YB = YAX, and [A; YA]A†[A AX] = S by "
            "AA†A = A. Conversely the left side has at most the rank of A.",
        .judge = judge_s33,
    },
    {0},
};
