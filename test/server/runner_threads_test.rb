# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# The threads that run the application in the modes thread and single.
class RunnerThreadsTest < Minitest::Test
  Request = Struct.new(:begun) do
    def run = self.begun = true
  end

  def test_request_begins_although_the_thread_that_queues_it_never_waits
    runners = Heddle::Server::RunnerThreads.new(1)
    thread = runners.start.then { Thread.list.last }
    Thread.pass until thread.stop? # it waits for requests
    request = Request.new
    runners << request

    assert request.begun
  ensure
    runners.stop
  end
end
