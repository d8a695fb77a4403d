# frozen_string_literal: true

require "test_helper"
require "heddle"
require "heddle/handoff"

# Why a process can't hand off connections.
class HandoffReasonTest < Minitest::Test
  def teardown
    Heddle::Handoff.workers = 1
    Heddle::Handoff.disable
  end

  def test_a_reason_is_a_missing_worker_or_else_a_missing_loop
    Heddle::Handoff.enable
    reasons = [1, 2].map do |workers|
      Heddle::Handoff.workers = workers
      Heddle::Handoff.status[:reason]
    end

    assert_equal ["needs a second worker", "no event loop of this process can hand off connections"], reasons
  end
end
