# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "objspace"
require "heddle"
require_relative "../support/scheduled"

# The garbage collector may run, and move things, at any moment.
class DatagramCollectorTest < Minitest::Test
  include Scheduled

  PROGRAM = <<~RUBY
    require "socket"
    require "heddle"
    compact = false
    Heddle.run do
      socket = Heddle::Net::DatagramSocket.bind("0.0.0.0", 0)
      client = UDPSocket.new
      client.connect("127.0.0.1", socket.port)
      HOW
      5.times do |round|
        4.times { |number| client.send("\#{round}.\#{number}", 0) }
        tasks = []
        got = 0
        while got < 4
          got += socket.receive do |bytes, peer|
            GC.compact if compact
            tasks << Heddle.async { GC.compact if compact; socket.send(bytes + peer.address, peer) }
          end
        end
        tasks.each(&:wait)
        4.times { |number| client.recv(100) == "\#{round}.\#{number}127.0.0.1" or abort "response \#{number}" }
      end
      receiver = Heddle.async { socket.receive { abort "a datagram" } rescue $!.class }
      Fiber.scheduler.yield
      GC.compact if compact
      socket.close
      receiver.value == IOError or abort "close"
      GC.stress = false
    end
    puts "fine"
  RUBY

  def test_under_gc_stress = check("GC.stress = true")

  def test_while_everything_moves = check("GC.auto_compact = true; GC.stress = true")

  def test_compacted_now_and_then = check("compact = true")

  def test_after_every_object_has_moved
    check("GC.verify_compaction_references(expand_heap: true, toward: :empty)")
  end

  def test_sockets_that_were_never_closed_are_collected
    before = descriptors
    50.times do
      socket = Heddle::Net::DatagramSocket.bind("127.0.0.1", 0)
      socket.send("self", Heddle::Net::DatagramSocket::Peer.new("127.0.0.1", socket.port))
      socket.receive { |_, peer| socket.send("again", peer) }
    end
    GC.start

    assert_operator descriptors, :<, before + 25
  end

  def test_memory_of_a_socket_is_reported_and_freed_by_close
    socket = Heddle::Net::DatagramSocket.bind("127.0.0.1", 0)
    empty = ObjectSpace.memsize_of(socket)
    socket.send("self", Heddle::Net::DatagramSocket::Peer.new("127.0.0.1", socket.port))
    socket.receive { nil }

    assert_operator ObjectSpace.memsize_of(socket), :>, 64 * Heddle::Net::DatagramSocket::LARGEST
    socket.close

    assert_equal empty, ObjectSpace.memsize_of(socket)
  end

  private

  def descriptors = Dir.children("/dev/fd").size

  # Without RubyGems there is a third of the objects to look at, each time.
  def check(how)
    output, status = ruby(PROGRAM.sub("HOW", how), flags: %w[-W:no-experimental])

    assert_equal "fine\n", output.lines.grep_v(/ASan|False positive|sanitizers/).join
    assert_predicate status, :success?
  end
end
