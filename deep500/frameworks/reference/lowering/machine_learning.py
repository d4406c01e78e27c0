"""The operators of classical machine learning, ONNX' domain ``ai.onnx.ml``."""

from deep500.frameworks.reference.lowering._onnx_reference import take_onnx

__all__: list[str] = []

_DOMAIN = "ai.onnx.ml"

for _op_type in (
    "ArrayFeatureExtractor",
    "FeatureVectorizer",
    "Imputer",
    "LinearClassifier",
    "LinearRegressor",
    "Normalizer",
    "SVMClassifier",
    "SVMRegressor",
    "Scaler",
):
    take_onnx(_op_type, domain=_DOMAIN, has_gradient=True)

for _op_type in (
    "Binarizer",
    "CastMap",
    "CategoryMapper",
    "DictVectorizer",
    "LabelEncoder",
    "OneHotEncoder",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
    "ZipMap",
):
    take_onnx(_op_type, domain=_DOMAIN)
