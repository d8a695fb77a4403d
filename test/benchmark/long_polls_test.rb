# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# benchmark/long_polls.rb, with few polls.
class LongPollsTest < Minitest::Test
  def test_every_poll_gets_its_answer_and_memory_is_printed
    skip("this system has no /proc") unless File.exist?("/proc/self/status")
    out, status = Open3.capture2e(RbConfig.ruby, File.join(ROOT, "benchmark/long_polls.rb"), "300")

    assert_predicate status, :success?, out
    assert_match(/^client: 300 polls wait, [\d.]+ kB each, \d+ MB in all \(RSS\)$/, out)
    assert_match(/^server: 300 polls wait, [\d.]+ kB each/, out)
    assert_match(/^300 of 300 answered/, out)
  end
end
