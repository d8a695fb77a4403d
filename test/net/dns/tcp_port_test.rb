# frozen_string_literal: true

# test: each selector

require "support/scheduled"
require_relative "support/dns_case"

# Connections of the DNS server: each costs a fiber, so their number is bounded when they are accepted.
class DNSTCPPortTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase
  include Scheduled

  def query(name = "a.test", type = :A) = framed(DNS::Message.query(name, type).encode)

  def test_without_an_idle_connection_a_client_waits_in_the_kernel_until_one_is_idle
    gate = Thread::Queue.new
    serving(->(query) { query.answer(gate.pop) }, tcp_connections: 2, tcp_idle: 600) do |dns|
      busy = Array.new(2) do |i|
        TCPSocket.new("127.0.0.1", dns.port).tap do |socket|
          socket.write(query)
          wait_until("the query") { dns.server.under_way == i + 1 }
        end
      end
      dns.tcp do |socket|
        socket.write(query("b.test"))

        refute socket.wait_readable(0.05)
        assert_equal [2, 2], [dns.server.tcp_connections, dns.server.tcp_accepted]
        2.times { gate.push("192.0.2.1") }
        gate.push("192.0.2.2")

        assert_equal "192.0.2.2", read_framed(socket).answers.first.data.address
      end
      busy.each { |socket| assert_equal "a.test", read_framed(socket).question.name }
    ensure
      gate.close
      busy&.each(&:close)
    end
  end

  def test_silent_connections_are_no_more_than_allowed
    serving(->(query) { query.answer("192.0.2.1") }, tcp_connections: 5, tcp_idle: 600) do |dns|
      silent = Array.new(50) { TCPSocket.new("127.0.0.1", dns.port) }
      wait_until("all are accepted") { dns.server.tcp_accepted == 50 }
      wait_until("most are closed") { dns.server.tcp_connections == 5 }

      wait_until("their ends") { silent.count { |socket| socket.wait_readable(0) } == 45 }

      assert_equal 0, dns.server.statistics[:rejected_connections]
    ensure
      silent&.each(&:close)
    end
  end

  def test_a_client_that_reads_nothing_is_cut_off
    large = ["x" * 60_000]
    serving(->(query) { query.answer(*large, type: :TXT) }, tcp_idle: 0.2) do |dns|
      dns.tcp do |socket|
        Thread.new { 1_000.times { socket.write(query("a.test", :TXT)) } }.report_on_exception = false
        wait_until("the end of the connection") { dns.server.tcp_accepted == 1 && dns.server.tcp_connections.zero? }

        assert_operator dns.server.statistics[:unsent], :>, 0
        wait_until("the end of the queries") { dns.server.under_way.zero? }
      end
      assert_equal :NOERROR, dns.ask("b.test", :TXT).rcode
    end
  end

  def test_close_ends_connections
    serving(->(query) { query.answer("192.0.2.1") }) do |dns|
      idle, half = Array.new(2) { TCPSocket.new("127.0.0.1", dns.port) }
      idle.write(query)
      read_framed(idle)
      half.write("\0")
      wait_until("both") { dns.server.tcp_connections == 2 }
      @clients = [idle, half]
    end
    @clients.each { |socket| assert socket.wait_readable(LIMIT) && read_end(socket) }
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", @clients.first.remote_address.ip_port) }
  ensure
    @clients&.each(&:close)
  end

  # A server whose system lacks something, in a process of its own.
  PROGRAM = <<~'RUBY'
    require "socket"
    require "heddle"
    require "heddle/net/dns"
    server = Heddle::Net::DNS::Server.new("127.0.0.1:0") { |query| query.answer("192.0.2.1") }
    query = Heddle::Net::DNS::Message.query("a.test", :A).encode
    answered = lambda do |client|
      client.write([query.bytesize].pack("n") << query)
      client.readpartial(2) && true
    end
    Heddle.run do
      server.run do
        port = server.addresses.first[/\d+\z/].to_i
        Heddle.async do
          BODY
        ensure
          server.close
        end
      end
    end
  RUBY

  def test_without_descriptors_accepting_pauses_and_continues
    output, status = ruby(PROGRAM.sub("BODY", <<~RUBY))
      first = TCPSocket.new("127.0.0.1", port)
      answered.(first) or abort "first"
      # the clients' ends exist before the server's ends are accepted
      Process.setrlimit(:NOFILE, 64)
      hogs = []
      begin loop { hogs << File.open(File::NULL) }; rescue Errno::EMFILE then hogs.pop.close; end
      client = TCPSocket.new("127.0.0.1", port)
      ticks = Fiber.scheduler.statistics[:ticks]
      sleep 0.3
      puts Fiber.scheduler.statistics[:ticks] - ticks < 50 ? "pauses" : "spins"
      puts server.tcp_accepted
      answered.(first) or abort "again"
      hogs.each(&:close)
      answered.(client) or abort "client"
      puts server.tcp_accepted
    RUBY

    assert_equal ["pauses\n1\n2\n", true], [output, status.success?]
  end

  private

  def read_end(socket)
    socket.read(1).nil?
  rescue Errno::ECONNRESET
    true
  end
end
