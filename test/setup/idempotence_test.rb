# frozen_string_literal: true

# test: alone

require "test_helper"
require "open3"

# bin/setup in this very checkout.
class IdempotenceTest < Minitest::Test
  # Seconds of processor time: those that it waits for others are no matter.
  LIMIT = 2.0

  def test_when_nothing_is_missing_it_says_one_line_in_less_than_two_seconds
    setup_once # what is missing, if anything is
    before = processor_seconds
    said, status = setup_once
    took = processor_seconds - before

    assert_predicate status, :success?, said
    assert_equal "ready: Ruby #{RUBY_VERSION}\n", said
    assert_operator took, :<, LIMIT
  end

  def test_an_unknown_option_is_refused_with_the_usage
    said, status = Open3.capture2e(File.join(ROOT, "bin/setup"), "--sytem")

    assert_equal 2, status.exitstatus
    assert_match(%r{\Abin/setup: --sytem is not an option\nUsage: bin/setup}, said)
  end

  private

  # Those of all programs that were started and have ended.
  def processor_seconds = Process.times.then { |times| times.cutime + times.cstime }

  def setup_once = Open3.capture2e({ "HEDDLE_RUBY" => RbConfig.ruby }, File.join(ROOT, "bin/setup"))
end
