/* SPDX-License-Identifier: BSD-3-Clause */
/* S10 - S18: the Newton-Raphson inverse of the bottleneck matrix. */
#include <math.h>
#include <stdlib.h>

#include "claims/claims.h"
#include "common/report.h"

/* ---- S10 ---- */

/* A = [1 a; a 1] has the eigenvalues 1 + a and 1 - a. */
static const double pair_coupling = 0.5;

/* The residual |A X_k A - A|_F / |A|_F after `iterations` steps from alpha A. Returns an exit code.
 */
static int pair_residual(const claim_run *run, double alpha, int iterations, double *residual)
{
    double a[4] = {1, pair_coupling, pair_coupling, 1}, x[4];
    atn_tensor ta = atn_tensor_dense(a, ATN_F64, 1, 1, 2, 2);
    atn_tensor tx = atn_tensor_dense(x, ATN_F64, 1, 1, 2, 2);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR);
    atn_inverse_info info;
    desc.alpha = alpha;
    desc.iterations = iterations;
    atn_status status = atn_inverse(run->context, &desc, &ta, &tx, &info, NULL);
    if (status < 0) {
        report_error("S10: %s", atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    /* The last finite iterate stands for one that overflowed. */
    *residual = info.stop == ATN_STOP_NONFINITE ? INFINITY : info.residual;
    return EXIT_PASS;
}

/* The closed form: |sum of e_i^2 l_i^2|^(1/2) / |A|_F with e_i = (1 - alpha l_i^2)^(2^k). */
static double pair_predicted(double alpha, int iterations)
{
    double sum = 0, norm = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        double lambda = 1 + sign * pair_coupling;
        double error = pow(fabs(1 - alpha * lambda * lambda), ldexp(1, iterations));
        sum += error * error * lambda * lambda;
        norm += lambda * lambda;
    }
    return sqrt(sum / norm);
}

/* Prop. 1 asks for an alpha that is small enough: how small? x = alpha lambda_max^2. */
static int judge_s10(const claim_run *run, verdict *v)
{
    static const double starts[] = {0.01, 0.5, 1, 1.5, 1.9, 1.99, 2, 2.01, 2.1, 3};
    enum { STARTS = sizeof starts / sizeof *starts, STEPS = 16 };
    double most_inside = 0, least_outside = INFINITY, square = pow(1 + pair_coupling, 2);
    fprintf(v->notes, "| αλ_max² | residual after %d steps | exact arithmetic |\n|---|---|---|\n",
            STEPS);
    for (int i = 0; i < STARTS; i++) {
        double residual;
        int code = pair_residual(run, starts[i] / square, STEPS, &residual);
        if (code != EXIT_PASS)
            return code;
        fprintf(v->notes, "| %g | %.3g | %.3g |\n", starts[i], residual,
                pair_predicted(starts[i] / square, STEPS));
        if (starts[i] < 2)
            most_inside = residual <= most_inside ? most_inside : residual;
        else
            least_outside = residual >= least_outside ? least_outside : residual;
    }
    bool converges_inside = most_inside <= 1e-12, fails_outside = least_outside > 0.1;
    v->kind = converges_inside && fails_outside ? VERDICT_HOLDS_IF
              : converges_inside                ? VERDICT_HOLDS
                                                : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "0 < α < 2/λ_max²");
    verdict_set(&v->measured,
                "largest residual after %d steps for αλ_max² < 2: %.2g; smallest for αλ_max² ≥ 2: "
                "%.2g",
                STEPS, most_inside, least_outside);
    verdict_set(&v->bound, "|1 − αλ²|^(2^k) for every eigenvalue λ");
    verdict_set(&v->counterexample, "A = [1 %g; %g 1], αλ_max² = 2: residual %.2g after %d steps",
                pair_coupling, pair_coupling, least_outside, STEPS);
    return EXIT_PASS;
}

const claim soft_inverse_claims[] = {
    {
        .id = "S10",
        .source = "IJCV Prop. 1",
        .statement = "When α is sufficiently small, A_k converges to A†.",
        .method = "A 2 × 2 matrix with eigenvalues 1 ± 1/2 in f64, from starts on both sides of "
                  "the limit.",
        .corrected = "X_k → A† if and only if 0 < α < 2/λ_max².",
        .proof = "All iterates are polynomials in A. On an eigenvector with λ ≠ 0 the error "
                 "e_k = 1 − λx_k obeys e_{k+1} = e_k², so e_k = (1 − αλ²)^(2^k): it goes to 0 if "
                 "and only if |1 − αλ²| < 1. On the null space X_0 = αA is 0 and stays 0.",
        .judge = judge_s10,
    },
    {0},
};
