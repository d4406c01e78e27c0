// The sizes, labels and attributes of a cross entropy, checked.
#ifndef NATIVE_OPS_SOFTMAX_CROSSENTROPY_SHAPES_H
#define NATIVE_OPS_SOFTMAX_CROSSENTROPY_SHAPES_H

#include <deep500/tensor.h>

namespace native_ops {

enum class Reduction { kNone, kSum, kMean };

// Scores are [N, C, S]: the class of position n * S + s is the middle index.
struct EntropyShapes {
    int64_t images, classes, pixels;
    int64_t ignored;
    Reduction reduction;

    template <typename T, typename L>
    EntropyShapes(const deep500::View<const T>& scores, const deep500::View<const int64_t>& labels,
                  const deep500::Optional<const T>& weights, const deep500::View<L>& loss,
                  const deep500::Attributes& attributes)
        : ignored(attributes.integer("ignore_index")), reduction(read(attributes.text("reduction"))) {
        deep500::require(scores.rank() >= 2 && labels.rank() == scores.rank() - 1, "scores has the rank ",
                         scores.rank(), " and labels ", labels.rank(), ", accepted are [N, C, ...] and [N, ...]");
        images = scores.shape(0), classes = scores.shape(1), pixels = 1;
        bool same = labels.shape(0) == images;
        for (int i = 1; i < labels.rank(); ++i) {
            pixels *= labels.shape(i);
            same = same && labels.shape(i) == scores.shape(i + 1);
        }
        deep500::require(same, "labels has another shape than scores without its classes");
        deep500::require(classes >= 1, "scores has no class, accepted is at least one");
        deep500::require(!weights || (weights.rank() == 1 && weights.size() == classes), "weights has ", weights.size(),
                         " elements, accepted is one for each of ", classes, " classes");
        deep500::require(loss.size() == (reduction == Reduction::kNone ? labels.size() : 1), "the loss has ",
                         loss.size(), " elements, which its reduction does not give");
    }

    D500_HOST_DEVICE int64_t positions() const { return images * pixels; }
    D500_HOST_DEVICE bool is_counted(int64_t label) const { return label != ignored; }
    D500_HOST_DEVICE bool is_class(int64_t label) const { return 0 <= label && label < classes; }
    // Where the scores of a position begin; those of its classes lie `pixels` apart.
    D500_HOST_DEVICE int64_t first(int64_t position) const {
        return position / pixels * classes * pixels + position % pixels;
    }

    // Throws for a label that is none.
    void check_labels(const deep500::View<const int64_t>& labels) const {
        for (const int64_t label : labels) {
            deep500::require(!is_counted(label) || is_class(label), "there is the label ", label, " for ", classes,
                             " classes, accepted are labels from 0 to ", classes - 1, " and ignore_index");
        }
    }

  private:
    static Reduction read(const std::string& name) {
        deep500::require(name == "none" || name == "sum" || name == "mean", "reduction is ", name,
                         ", accepted are none, sum and mean");
        return name == "none" ? Reduction::kNone : name == "sum" ? Reduction::kSum : Reduction::kMean;
    }
};

}  // namespace native_ops

#endif
