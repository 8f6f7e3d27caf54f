"""The texts of the block walk: what each operation is called, what it does, what to look for."""

from __future__ import annotations

from dataclasses import dataclass

from app.i18n import tr


@dataclass(frozen=True, kw_only=True)
class OpWords:
    """`title`: in a card; `what` and `look`: a paragraph each."""

    title: str
    what: str
    look: str

    @property
    def text(self) -> str:
        """Both paragraphs, as the ⓘ shows them."""
        return f"{self.what}\n\n{self.look}"


def end_words() -> dict[str, OpWords]:
    """Both ends: the way in and the way out."""
    return {
        "embed.row": OpWords(
            title=tr("Row of the table"),
            what=tr(
                "The token's id picks one row of the embedding table: from here on the token is these "
                "numbers. It is a product with a one-hot vector that nobody computes."
            ),
            look=tr("Look at the nearest tokens: spelling variants and words of like meaning have "
                    "rows that point the same way."),
        ),
        "embed.scale": OpWords(
            title=tr("Scaled embedding"),
            what=tr(
                "This model multiplies the row by a constant before anything else, so that it is not "
                "lost beside what the blocks add."
            ),
            look=tr("Look at the length ‖x‖ before and after."),
        ),
        "embed.position": OpWords(
            title=tr("Position vector"),
            what=tr(
                "A second table has one row for each position. It is learned, and it is how this "
                "model knows the order of its tokens."
            ),
            look=tr("Step through the tokens: neighbouring positions have similar vectors."),
        ),
        "embed.sum": OpWords(
            title=tr("Token + position"),
            what=tr(
                "What the token is and where it stands are simply added."
            ),
            look=tr("Look at which of the two is longer."),
        ),
        "embed.norm": OpWords(
            title=tr("Embedding norm"),
            what=tr(
                "This model brings the embedding to unit spread before the first block."
            ),
            look=tr("Look at σ before and after."),
        ),
        "embed.out": OpWords(
            title=tr("Into the stream"),
            what=tr(
                "The residual stream begins here. Every block reads it and adds to it; nothing ever "
                "replaces it."
            ),
            look=tr("Compare its length with the stream's after a few blocks."),
        ),
        "resid_post": OpWords(
            title=tr("Stream in"),
            what=tr("What all blocks have left at this token: its embedding plus everything added since."),
            look=tr("No block follows: the head reads this, and only this."),
        ),
        "head.norm": OpWords(
            title=tr("Final norm"),
            what=tr(
                "The stream at a standard size once more, as the head reads it."
            ),
            look=tr("Look at the divisor: it has grown through all blocks."),
        ),
        "head.logits": OpWords(
            title=tr("Logits"),
            what=tr(
                "One number for each token of the vocabulary: how well the stream points at the "
                "token's row of the head's matrix. With tied weights that is the embedding table "
                "again."
            ),
            look=tr("Only differences count: adding a constant to all changes nothing."),
        ),
        "head.softmax": OpWords(
            title=tr("Probabilities"),
            what=tr(
                "Softmax over the vocabulary. Its negative log at the token that came is the loss "
                "there, and the exponential of the mean loss is the perplexity."
            ),
            look=tr("The Sampling panel shows what temperature and the filters make of it."),
        ),
    }  # fmt: skip


def attention_words() -> dict[str, OpWords]:
    """The stream and the attention half of a block."""
    return {
        "resid_pre": OpWords(
            title=tr("Stream in"),
            what=tr(
                "What all blocks before this one have left at this token: its embedding plus "
                "everything added since."
            ),
            look=tr("A few dimensions are often far larger than all others, at every token."),
        ),
        "attn.norm": OpWords(
            title=tr("Norm"),
            what=tr(
                "Attention reads the stream at a standard size: the vector is divided by its spread "
                "and each dimension gets a learned gain. The stream itself stays as it is."
            ),
            look=tr("Look at the divisor: it grows from block to block as the stream does."),
        ),
        "attn.q": OpWords(
            title=tr("Query"),
            what=tr(
                "What this token is looking for, one short vector for each head."
            ),
            look=tr("The marked row is the chosen head's."),
        ),
        "attn.q_norm": OpWords(
            title=tr("Query norm"),
            what=tr(
                "This model brings every query to unit size, so that scores cannot run away."
            ),
            look=tr("Look at how the length changes."),
        ),
        "attn.k": OpWords(
            title=tr("Key"),
            what=tr(
                "What this token can be found by. Heads of one group share a key, which is what makes "
                "the cache smaller."
            ),
            look=tr("The marked row is the one the chosen head reads."),
        ),
        "attn.k_norm": OpWords(
            title=tr("Key norm"),
            what=tr(
                "This model brings every key to unit size before it is compared."
            ),
            look=tr("Look at how the length changes."),
        ),
        "attn.v": OpWords(
            title=tr("Value"),
            what=tr(
                "What this token hands over to whoever reads it. It is never rotated: a position "
                "decides who reads, not what is read."
            ),
            look=tr("Its length decides how much a weight can move."),
        ),
        "attn.rot_q": OpWords(
            title=tr("Rotated query"),
            what=tr(
                "Each pair of dimensions turns by an angle proportional to the position. The length "
                "stays, only the direction tells where the token stands."
            ),
            look=tr("‖x‖ is the same as before: rotation changes no length."),
        ),
        "attn.rot_k": OpWords(
            title=tr("Rotated key"),
            what=tr(
                "The key turns as the query does. Their product then depends on how far apart the two "
                "stand, and on nothing else about where."
            ),
            look=tr("This is what the cache keeps."),
        ),
        "attn.dots": OpWords(
            title=tr("q·k"),
            what=tr(
                "The query is multiplied with the key of every token, later ones too. A large product "
                "means: this is what I am looking for."
            ),
            look=tr("Open its terms: which dimensions make the largest product?"),
        ),
        "attn.scaled": OpWords(
            title=tr("Scaled scores"),
            what=tr(
                "A sum of d products spreads like √d. Dividing by it keeps the softmax from becoming "
                "a single spike."
            ),
            look=tr("Compare σ here and before."),
        ),
        "attn.bias": OpWords(
            title=tr("Distance bias"),
            what=tr(
                "ALiBi: instead of marking tokens with positions, every head takes away a fixed "
                "amount for each token of distance. Here it is added by key; what is equal in a row "
                "falls out of the softmax."
            ),
            look=tr("Heads have different slopes: steep ones see only what is near."),
        ),
        "attn.cap": OpWords(
            title=tr("Soft cap"),
            what=tr(
                "Scores are bent so that none can pass a bound, while small ones stay as they are."
            ),
            look=tr("Scores near the bound are squeezed together."),
        ),
        "attn.mask": OpWords(
            title=tr("Mask"),
            what=tr(
                "A token may not read what comes after it: those scores become −∞. That is why all "
                "positions can be trained at once without giving the answer away."
            ),
            look=tr("Masked keys are drawn in the surface colour."),
        ),
        "attn.pattern": OpWords(
            title=tr("Weights"),
            what=tr(
                "Softmax turns the visible scores into shares that sum to 1. An entropy near 0 means "
                "one key takes all."
            ),
            look=tr("Much weight on the very first token means that the head found nothing to read."),
        ),
        "attn.z": OpWords(
            title=tr("Weights × V"),
            what=tr(
                "The values of all keys, mixed by the weights: what this head takes from the context "
                "to this token."
            ),
            look=tr("Open its terms: each row is one token's contribution."),
        ),
        "attn.concat": OpWords(
            title=tr("Heads joined"),
            what=tr(
                "The results of all heads, one after the other, make a vector again."
            ),
            look=tr("Some rows are far brighter: those heads had something to say here."),
        ),
        "attn.proj": OpWords(
            title=tr("Output projection"),
            what=tr(
                "W_o mixes the heads and writes them into the dimensions of the stream."
            ),
            look=tr("Open its terms to see what each head writes."),
        ),
        "attn.post_norm": OpWords(
            title=tr("Post-norm"),
            what=tr(
                "This model also brings to size what attention gives, before it is added."
            ),
            look=tr("Look at the length before and after."),
        ),
        "attn.out": OpWords(
            title=tr("Scaled output"),
            what=tr(
                "What attention gives is multiplied by a constant before it is added."
            ),
            look=tr("Look at the length before and after."),
        ),
        "resid_mid": OpWords(
            title=tr("Stream midway"),
            what=tr(
                "The stream plus what attention found. Adding keeps a straight way for everything "
                "earlier."
            ),
            look=tr("Compare its length with that of what was added."),
        ),
        "resid_post": OpWords(
            title=tr("Stream out"),
            what=tr(
                "The stream as the next block reads it. Worked out again here from the stored stream, "
                "it equals what the run stored: the error is written above."
            ),
            look=tr("Compare with the stream that came in: most of it is still there."),
        ),
    }  # fmt: skip


def feed_forward_words() -> dict[str, OpWords]:
    """The feed-forward half of a block."""
    return {
        "mlp.norm": OpWords(
            title=tr("Norm"),
            what=tr(
                "The feed-forward part reads the stream at a standard size, too."
            ),
            look=tr("Look at the divisor beside that of the first norm."),
        ),
        "moe.router": OpWords(
            title=tr("Router"),
            what=tr(
                "One score for each expert: which of them suit this token?"
            ),
            look=tr("How far is the best from the second?"),
        ),
        "moe.probs": OpWords(
            title=tr("Router's shares"),
            what=tr(
                "Softmax over the experts."
            ),
            look=tr("An even row means the router is unsure."),
        ),
        "moe.weights": OpWords(
            title=tr("Chosen experts"),
            what=tr(
                "Only the best few are run: the model has many parameters, and a token pays for few."
            ),
            look=tr("The list says which experts, and with which share."),
        ),
        "mlp.pre": OpWords(
            title=tr("Pre-activation"),
            what=tr(
                "Each number asks one question of the token: how much of this pattern is in it? There "
                "are several times as many as the stream has dimensions, which gives room to ask."
            ),
            look=tr("Most are small or negative: those neurons stay silent."),
        ),
        "mlp.up": OpWords(
            title=tr("Up"),
            what=tr(
                "The second wide vector: what each neuron would pass on if its gate were open."
            ),
            look=tr("Compare with the gate: the product needs both."),
        ),
        "mlp.act": OpWords(
            title=tr("Activation"),
            what=tr(
                "The bend that makes the network more than one matrix: negative gates are closed, "
                "positive ones pass."
            ),
            look=tr("How many are near zero?"),
        ),
        "mlp.post": OpWords(
            title=tr("Neurons"),
            what=tr(
                "What each neuron passes on. A few are strong, most are close to nothing."
            ),
            look=tr("The strongest ones are listed in the Feed-forward panel."),
        ),
        "mlp.down": OpWords(
            title=tr("Down"),
            what=tr(
                "Every neuron writes its own direction into the stream, as strongly as it is active."
            ),
            look=tr("Compare its length with that of attention's output."),
        ),
        "mlp.post_norm": OpWords(
            title=tr("Post-norm"),
            what=tr(
                "This model also brings to size what the feed-forward gives, before it is added."
            ),
            look=tr("Look at the length before and after."),
        ),
        "mlp.out": OpWords(
            title=tr("Scaled output"),
            what=tr(
                "What the feed-forward gives is multiplied by a constant before it is added."
            ),
            look=tr("Look at the length before and after."),
        ),
    }  # fmt: skip
