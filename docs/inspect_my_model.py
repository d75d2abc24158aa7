"""Is SOFT's inverse safe on my model's tokens? Prints a conclusion per layer, and writes one page: model.html."""
import attnum.torch
import torch

# your model and its images, such as timm.create_model("vit_tiny_patch16_224", pretrained=True), (1, 3, 224, 224)
layer = torch.nn.TransformerEncoderLayer(64, 2, batch_first=True, norm_first=True)
model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
found = attnum.torch.inspect(model, torch.randn(1, 196, 64), html="model.html", dtype="f32")
for name, tables in found.items():
    print(name, tables["inspect_advice"][0]["advice"])
