# frozen_string_literal: true

# test: long

require "test_helper"
require "fileutils"
require "open3"
require "rbconfig"

# A moment of fuzzing from the corpus, for each parser and writer in C. `bin/fuzz` does it for hours.
class FuzzTest < Minitest::Test
  RUN = File.join(__dir__, "run")
  SECONDS = ENV.fetch("HEDDLE_FUZZ_SECONDS") { Heddle::TestHelpers.nightly? ? "1" : "0.3" }
  SEED = RUBY_VERSION.delete(".") # other inputs on each Ruby

  def fuzz(target)
    output, status = Open3.capture2e(RbConfig.ruby, RUN, "--seconds", SECONDS, "--seed", SEED, target)
    [output, status.success?]
  end

  %w[request_head response_head chunked response_head_writer proxy_header hpack h2_session h2_program h2_memory
     websocket pubsub_history handoff].each do |target|
    define_method("test_#{target}_keeps_its_promises") do
      output, found_nothing = fuzz(target)

      assert_same true, found_nothing, output
    end
  end

  # `bin/fuzz --hours 0.02` is a minute, however many parsers there are.
  def test_a_turn_of_hours_is_no_longer_than_they_are
    output, status = Open3.capture2e(RbConfig.ruby, RUN, "--hours", "0.0002", "--seed", SEED, "chunked")

    assert_predicate status, :success?, output
    assert_match(/\Achunked \(.*, 1 s\)$/, output)
    assert_match(/^1 passed, 0 failed$/, output)
  end

  def test_a_planted_read_behind_the_end_is_found
    output, found_nothing = fuzz("planted")

    refute found_nothing, "it was not found: #{output}"
    assert_match(/heap-buffer-overflow/, output)
    input = Dir["#{output[/the input is in (\S+)\*/, 1]}*"].first

    assert_match(/bug![\x80-\xFF]/n, File.binread(input))
    assert_operator File.size(input), :<=, 1024, "the driver's buffer and not the input"
  ensure
    FileUtils.rm_f(output.to_s[/the input is in (\S+)\*/, 1]&.then { |path| Dir["#{path}*"] } || [])
  end
end
