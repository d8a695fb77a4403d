# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "heddle/server/cluster"

# The thread of a worker that reads the master's messages.
class ClusterWorkerTest < Minitest::Test
  Cluster = Heddle::Server::Cluster

  # Keeps the events.
  class Log
    def initialize = @events = Queue.new

    attr_reader :events

    def event(name, **fields) = @events << [name, fields]
  end

  # Has a page of tasks, and fails to say which requests run.
  class FakeServer
    def running_requests = raise(NotImplementedError, "not here")
    def task_tree = "no tasks\n"
  end

  LIMIT = 30

  def setup
    @master, channel = Cluster::MessageSocket.pair
    @log = Log.new
    @worker = Cluster::Worker.new(Cluster::Worker::Setting.new(configuration: nil, log: @log, resources: nil),
                                  index: 2, slot: 0, channel:)
    @worker.instance_variable_set(:@server, FakeServer.new)
    @worker.send(:start_listener)
  end

  def teardown = @master.close

  def logged = @log.events.pop(timeout: LIMIT)

  def tasks
    reader, writer = IO.pipe
    @master.send_message("query", what: "tasks", io: writer)
    writer.close
    reader.timeout = LIMIT
    reader.read
  ensure
    reader.close
  end

  def test_a_message_that_fails_is_logged_and_the_next_one_is_handled
    @master.send_message("running_requests")
    name, fields = logged

    assert_equal [:message_failed, 2, "NotImplementedError: not here"], [name, *fields.values_at(:worker, :error)]
    assert_match(/worker_test.rb:\d+/, fields[:place])
    assert_equal "no tasks\n\0", tasks
  end

  # The master gives up after a while, and this may be before the reply is written.
  def test_a_query_whose_asker_is_gone_is_no_failure_and_the_next_one_is_answered
    reader, writer = IO.pipe
    reader.close
    @master.send_message("query", what: "tasks", io: writer)
    writer.close

    assert_equal "no tasks\n\0", tasks
    assert_empty @log.events
  end

  def test_bytes_that_are_no_message_are_logged_and_the_next_message_is_handled
    @master.io.send("Z\0\0\0\x05I", 0)
    name, fields = logged

    assert_equal [:malformed_message, "the master"], [name, fields[:process]]
    assert_equal "no tasks\n\0", tasks
  end

  # The system's watches run out twice, for two waits each.
  class UnwatchedSocket
    def initialize = @waits = [Errno::ENOSPC, Errno::ENOSPC, nil, Errno::ENOSPC, Errno::ENOSPC, nil]

    attr_reader :waits

    def wait_readable
      failure = @waits.shift
      raise failure, "epoll" if failure
    end
  end

  def test_a_worker_without_watches_accepts_handoffs_and_says_once_why_it_polls
    socket = UnwatchedSocket.new
    accepted = 0
    server = Object.new
    server.define_singleton_method(:draining?) { socket.waits.empty? }
    server.define_singleton_method(:accept_handoff) { |_| (accepted += 1) && nil }
    @worker.instance_variable_set(:@server, server)
    @worker.define_singleton_method(:resources) { Struct.new(:handoff_receiver).new(socket) }
    @worker.send(:accept_handoffs)

    assert_equal 5, accepted, "it is asked after each wait but the last"
    assert_equal [:handoffs_not_watched], Array.new(@log.events.size) { logged.first }
  end

  def test_the_end_of_the_master_is_logged
    @master.close

    assert_equal [:master_lost, { worker: 2, reason: "the master has ended" }], logged
  end
end
