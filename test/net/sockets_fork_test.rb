# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# A child does not share its parent's sockets.
class SocketsForkTest < Minitest::Test
  include Heddle::TestHelpers::SocketsCase

  def test_a_child_holds_no_connection_open
    with_child_of_a_busy_server do |server, clients, _said|
      server.sockets.close

      clients.each do |client|
        assert client.wait_readable(LIMIT), "the child keeps the connection open"
        assert_nil(error_of(Errno::ECONNRESET) { assert_nil client.read(1) })
      end
    end
  end

  def test_a_child_can_use_none_of_them
    with_child_of_a_busy_server do |server, clients, said|
      listen, connections, write, closed = said

      assert_match(/belong to the parent process/, listen.message)
      assert_equal 0, connections
      assert_match(/closed/, write.message)
      assert closed
      assert_equal 2, server.sockets.connections
      assert_nil clients.first.wait_readable(0)
    end
  end

  # Its fiber continues in the child, where those that served beside it are gone, records and all.
  def test_a_handler_that_forks_ends_cleanly_in_the_child
    output, status = ruby(<<~'RUBY')
      require "socket"
      require "heddle/http"
      require "heddle/net/sockets"
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      parent = Process.pid
      hold = true
      sockets = Heddle::Net::Sockets.new(scheduler, service: Heddle::HTTP::Engine.new) do |exchange|
        if exchange.target == "/1"
          child = fork
          if child
            Process.wait(child)
            print "parent #{$?.exitstatus}"
            hold = false
          else
            3.times { GC.start and Array.new(10_000) { "x" * 100 } }
            at_exit { exit!(7) }
          end
        else
          scheduler.yield while hold && parent == Process.pid
        end
      end
      Fiber.schedule do
        clients = Array.new(3) do |number|
          mine, client = UNIXSocket.pair
          sockets.adopt(mine)
          mine.close
          client.write("GET /#{number} HTTP/1.1\r\nHost: a\r\n\r\n")
          client
        end
        scheduler.yield while hold && parent == Process.pid
        clients.each(&:read) if parent == Process.pid
      end
      scheduler.run
    RUBY

    assert_includes output, "parent 7"
    assert_predicate status, :success?
  end

  def test_a_parent_continues_beside_a_child_that_runs_a_server_of_its_own
    serve(echo) do |server|
      client = server.connect
      client.ask.answer
      from_child, to_parent = IO.pipe
      pid = fork do
        from_child.close
        listener = TCPServer.new("127.0.0.1", 0)
        sockets = sockets_with(server.scheduler, echo)
        sockets.listen(listener)
        to_parent.write(Server.new(sockets, listener).connect.ask("child").answer)
        exit!(0)
      end
      to_parent.close

      assert_equal "child", from_child.read

      assert_equal "b", client.ask("b").answer
      Process.wait(pid)
    end
  end

  private

  # Yields the server, its clients (one busy, one idle) and what its child says of them.
  def with_child_of_a_busy_server
    busy = nil
    handler = lambda do |exchange|
      busy = exchange
      until_true { exchange.closed? }
    end
    serve(handler) do |server|
      clients = Array.new(2) { server.connect }
      clients.first.ask
      until_true { busy && server.sockets.connections == 2 }
      with_child(-> { words_of_child(server, busy) }) { |said| yield server, clients, said }
    end
  end

  def words_of_child(server, exchange)
    [error_of(IOError) { server.sockets.listen(server.listener) }, server.sockets.connections,
     error_of(Heddle::ClientGoneError) { exchange.write("y") }, server.sockets.closed?]
  end

  # Yields what the child has to say, while it lives on.
  def with_child(words)
    child, parent = UNIXSocket.pair
    pid = fork do
      parent.close
      child.write("#{Marshal.dump(words.call)}end")
      child.read(1)
      exit!(0)
    end
    child.close
    said = +""
    said << parent.readpartial(4096) until said.end_with?("end")
    yield Marshal.load(said) # rubocop:disable Security/MarshalLoad
  ensure
    parent.close
    Process.wait(pid)
  end
end
