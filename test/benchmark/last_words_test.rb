# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class LastWordsTest < Minitest::Test
  def test_the_first_error_line_is_returned_without_paths
    words = Bench::LastWords.of("starting\n\n/home/me/app.rb:3: Bind Error at /tmp/x\nat_exit failed\n")

    assert_equal "app.rb:3: Bind Error at x", words
  end

  def test_empty_output_is_reported_as_such
    assert_equal "it printed no error", Bench::LastWords.of("listening\n")
  end
end
