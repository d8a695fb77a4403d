# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "support/differential"

# HPACK against python3-hpack: both decode random blocks alike.
class HpackDifferentialTest < Minitest::Test
  SEED = RUBY_VERSION.delete(".")

  def test_blocks_mean_the_same_to_python3_hpack
    differential = Differential.hpack
    skip "python3-hpack is not installed (bin/setup --system)" unless differential.installed?

    Dir.mktmpdir do |folder|
      assert differential.build(folder)
      output, status = differential.run(repetitions(1), SEED)

      assert_predicate status, :success?, output
      assert_match(/\A[1-9]\d+ blocks, [1-9]/, output)
    end
  end
end
