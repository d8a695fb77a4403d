# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "support/differential"

# The session against python3-h2: random frames have the same outcome, or one whose reason is listed.
class FramesDifferentialTest < Minitest::Test
  SEED = RUBY_VERSION.delete(".")

  def test_frames_have_the_outcome_that_they_have_with_python3_h2
    differential = Differential.frames
    skip "python3-h2 is not installed (bin/setup --system)" unless differential.installed?

    Dir.mktmpdir do |folder|
      assert differential.build(folder)
      sequences = repetitions(Heddle::TestHelpers.nightly? ? 500 : 200)
      output, status = differential.run(sequences, SEED)

      assert_predicate status, :success?, output
      assert_match(/\A#{sequences} sequences, [1-9]\d{3,} frames/, output)
    end
  end
end
