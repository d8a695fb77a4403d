# frozen_string_literal: true

require "support/scheduled"
require "heddle"

# Tests of what makes a fiber that computes give way: with preemption on, in slices that are short.
module Preempted
  include Scheduled

  SLICE = 0.002

  def setup
    Heddle.enable(:preempt, slice: SLICE)
  end

  def teardown
    Heddle.disable(:preempt)
  end

  # Seconds that the block computes for, whoever runs meanwhile.
  def compute(seconds)
    deadline = now + seconds
    nil until now > deadline
  end
end
