#!/usr/bin/env bash
# A query without a relevant document has the best NDCG, 1, for LightGBM and XGBoost, and 0 for scikit-learn.
#
# Seen with: lightgbm 4.7.0, xgboost 3.2.0, scikit-learn 1.9.1, pytrec-eval-terrier 0.5.11, numpy 2.4.6, CPython 3.11.
#
# No order of such a query is better than another, and the mean over queries has to count it as something. Logs of
# searches have many queries without a click: where most are of this kind, a random order has 0.84 or 0.20, differences
# between models shrink by as much, and two libraries' scores of one model are far apart. XGBoost's metric "ndcg-"
# counts 0. LightGBM has no such choice. trec_eval, which papers use, counts 0, too, but a query for which a model finds
# no document at all is left out of its results, and so of a mean over them.
#
# Output seen:
#   with a relevant document: LightGBM 0.57, XGBoost 0.57, XGBoost "ndcg@10-" 0.57, scikit-learn 0.57, trec_eval 0.57
#   most without: LightGBM 0.84, XGBoost 0.84, XGBoost "ndcg@10-" 0.20, scikit-learn 0.20, trec_eval 0.20
#   all without: LightGBM 1.00, XGBoost 1.00, XGBoost "ndcg@10-" 0.00, scikit-learn 0.00, trec_eval 0.00
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  lightgbm==4.7.0 xgboost==3.2.0 scikit-learn==1.9.1 pytrec-eval-terrier==0.5.11 numpy==2.4.6

cat > ndcg.py <<'PYTHON'
import lightgbm
import numpy as np
import pytrec_eval
import xgboost
from sklearn.metrics import ndcg_score

QUERIES, DOCUMENTS = 200, 10
random = np.random.default_rng(0)
relevant = random.random((QUERIES, DOCUMENTS)) < 0.2
scores = random.random((QUERIES, DOCUMENTS))


def of_lightgbm(relevant, scores):
    groups = np.full(len(relevant), DOCUMENTS)
    data = lightgbm.Dataset(np.zeros((relevant.size, 1)), relevant.ravel(), group=groups, init_score=scores.ravel())
    options = {"objective": "lambdarank", "metric": "ndcg", "eval_at": 10, "verbosity": -1, "num_threads": 1}
    found = {}
    lightgbm.train(options, data, 1, [data], callbacks=[lightgbm.record_evaluation(found)])
    return found["training"]["ndcg@10"][0]


def of_xgboost(metric, relevant, scores):
    data = xgboost.DMatrix(np.zeros((relevant.size, 1)), relevant.ravel(), base_margin=scores.ravel())
    data.set_group(np.full(len(relevant), DOCUMENTS))
    options = {"objective": "rank:ndcg", "eval_metric": metric, "nthread": 1}
    booster = xgboost.Booster(options, [data])
    return float(booster.eval(data).split(":")[-1])


def of_trec_eval(relevant, scores):
    true = {str(query): {str(each): int(row[each]) for each in range(DOCUMENTS)} for query, row in enumerate(relevant)}
    run = {str(query): {str(each): float(row[each]) for each in range(DOCUMENTS)} for query, row in enumerate(scores)}
    found = pytrec_eval.RelevanceEvaluator(true, {"ndcg"}).evaluate(run)
    return np.mean([each["ndcg"] for each in found.values()])


has_any = relevant.any(axis=1)
empty = relevant & (random.random(QUERIES) < 0.4)[:, np.newaxis]
for what, labels, given in (
    ("with a relevant document", relevant[has_any], scores[has_any]),
    ("most without", empty, scores),
    ("all without", np.zeros_like(relevant), scores),
):
    found = {
        "LightGBM": of_lightgbm(labels, given),
        "XGBoost": of_xgboost("ndcg@10", labels, given),
        'XGBoost "ndcg@10-"': of_xgboost("ndcg@10-", labels, given),
        "scikit-learn": ndcg_score(labels, given),
        "trec_eval": of_trec_eval(labels, given),
    }
    print(f"{what}:", ", ".join(f"{name} {value:.2f}" for name, value in found.items()))
PYTHON

venv/bin/python ndcg.py | tee found
diff seen found
