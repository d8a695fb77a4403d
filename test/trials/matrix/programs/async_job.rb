# frozen_string_literal: true

require "async"
require "heddle/async"
require "async/job"
require "async/job/processor/inline"

# Performs jobs when eight of them run.
class Work
  attr_reader :done

  def initialize
    @done = []
    @meeting = Meeting.new
  end

  def call(job)
    @meeting.wait
    @done << job["number"]
  end
end

work = Work.new
Heddle.run do
  queue = Async::Job::Builder.build(work) { dequeue Async::Job::Processor::Inline }
  Heddle.map(0...CLIENTS) { |number| queue.call({ "number" => number }) }
  sleep 0.005 until work.done.size == CLIENTS
end
proves("8 jobs of 8 tasks run at once, in the process", work.done.sort == [*0...CLIENTS])
