# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class LastWordsTest < Minitest::Test
  def test_the_first_line_that_tells_of_an_error_without_paths
    words = Bench::LastWords.of("starting\n\n/home/me/app.rb:3: Bind Error at /tmp/x\nat_exit failed\n")

    assert_equal "app.rb:3: Bind Error at x", words
  end

  def test_nothing_printed_is_said_so
    assert_equal "it printed no error", Bench::LastWords.of("listening\n")
  end
end
