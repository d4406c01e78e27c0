// What an operator says of itself, as JSON.
#ifndef DEEP500_DETAIL_DESCRIPTION_H
#define DEEP500_DETAIL_DESCRIPTION_H

#include <deep500/detail/signature.h>

#include <cmath>
#include <cstdio>

namespace deep500 {
namespace detail {

D500_COLD inline std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            result += escape;
        } else {
            result += c;
        }
    }
    return result + "\"";
}

// Infinities and NaN in the words of Python's reader.
D500_COLD inline std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

inline const char* truth(bool value) {
    return value ? "true" : "false";
}

// Texts between brackets, with commas.
class Listing {
  public:
    explicit Listing(const char* brackets) : brackets_(brackets), text_(1, brackets[0]) {}
    D500_COLD void add(const std::string& item) {
        if (text_.size() > 1) text_ += ", ";
        text_ += item;
    }
    std::string text() const { return text_ + brackets_[1]; }

  private:
    const char* brackets_;
    std::string text_;
};

struct Description {
    std::string name;
    int inputs = 0, outputs = 0;
    Listing dtypes{"[]"}, signatures{"[]"}, optional_inputs{"[]"}, devices{"[]"}, attributes{"{}"}, defaults{"{}"};
    bool differentiable = false, twice_differentiable = false;
    BackwardReads reads;

    D500_COLD void add_signature(const Signature& forward) {
        Listing in("[]"), out("[]");
        for (int i = 0; i < forward.inputs(); ++i) in.add(quoted(dtype_name(forward.dtypes[i])));
        for (int i = 0; i < forward.outputs(); ++i) {
            out.add(quoted(dtype_name(forward.dtypes[forward.inputs() + i])));
        }
        signatures.add("[" + in.text() + ", " + out.text() + "]");
    }

    D500_COLD void add_attribute(const DeclaredAttribute& declared) {
        const char* kinds[] = {"", "int", "float", "string", "ints", "floats"};
        attributes.add(quoted(declared.name) + ": " + quoted(kinds[declared.kind]));
        if (!declared.has_default) return;
        const std::string value = declared.kind == D5_ATTRIBUTE_INT     ? std::to_string(declared.integer)
                                  : declared.kind == D5_ATTRIBUTE_FLOAT ? number(declared.real)
                                                                        : quoted(declared.text);
        defaults.add(quoted(declared.name) + ": " + value);
    }

    D500_COLD std::string json() const {
        Listing all("{}");
        all.add("\"abi_version\": " + std::to_string(DEEP500_ABI_VERSION));
        all.add("\"name\": " + quoted(name));
        all.add("\"inputs\": " + std::to_string(inputs));
        all.add("\"outputs\": " + std::to_string(outputs));
        all.add("\"dtypes\": " + dtypes.text());
        all.add("\"signatures\": " + signatures.text());
        all.add("\"optional_inputs\": " + optional_inputs.text());
        all.add("\"devices\": " + devices.text());
        all.add("\"attributes\": " + attributes.text());
        all.add("\"defaults\": " + defaults.text());
        all.add(std::string("\"differentiable\": ") + truth(differentiable));
        all.add(std::string("\"twice_differentiable\": ") + truth(twice_differentiable));
        all.add(std::string("\"gradient_needs\": {\"inputs\": ") + truth(reads.inputs) +
                ", \"outputs\": " + truth(reads.outputs) + "}");
        return all.text();
    }
};

}  // namespace detail
}  // namespace deep500

#endif
