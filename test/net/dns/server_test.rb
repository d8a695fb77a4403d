# frozen_string_literal: true

# test: each selector
# test: smoke

require "English"
require_relative "support/dns_case"

# Queries as tasks: time limits, numbers, TCP, errors of the program.
class DNSServerTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  def test_options_that_the_first_query_would_fail_with_are_refused
    { deadline: "x", queries: "x", tcp_idle: 0, tcp_connections: nil, tcp_per_client: -1,
      on_error: :log }.each do |name, wrong|
      error = assert_raises(ArgumentError) { Heddle::Net::DNS::Server.new("127.0.0.1:0", name => wrong) { flunk } }

      assert_match(/\A#{name}: is #{Regexp.escape(wrong.inspect)}, but must be /, error.message)
    end
    error = assert_raises(ArgumentError) { Heddle::Net::DNS::Client.new("127.0.0.1", timeout: "x") }

    assert_match(/\Atimeout: is "x", but must be /, error.message)
  end

  def test_slow_responses_do_not_delay_others
    gate = Thread::Queue.new
    serving(->(query) { query.answer(query.name == "slow.test" ? gate.pop : "192.0.2.1") }) do |dns|
      slow = Thread.new { dns.ask("slow.test", :A) }
      wait_until("the slow query") { dns.server.under_way == 1 }

      assert_equal "192.0.2.1", dns.ask("quick.test", :A).answers.first.data.address
      gate.push("192.0.2.2")

      assert_equal "192.0.2.2", slow.value.answers.first.data.address
    end
  end

  # Messages without a byte are the shortest ones.
  def test_a_connection_with_many_messages_takes_turns_with_queries
    server = nil
    counts = []
    program = lambda do |query|
      sleep(0) until (counts << server.statistics[:queries]).last > 20_000
      query.answer("192.0.2.1")
    end
    serving(program, deadline: LIMIT) do |dns|
      server = dns.server
      asking = Thread.new { dns.ask("a.test", :A) }
      wait_until("the query") { server.under_way == 1 }
      dns.tcp { |socket| socket.write("\0" * 40_000) && asking.join }
    end

    assert_operator counts.each_cons(2).map { |before, after| after - before }.max, :<=, 512
  end

  def test_over_the_deadline_the_client_gets_servfail_and_the_program_is_cancelled
    ended = Thread::Queue.new
    program = lambda do |query|
      query.answer("192.0.2.1")
      sleep
    ensure
      ended.push($ERROR_INFO.class)
    end
    serving(program, deadline: 0.05) do |dns|
      answer = dns.ask("a.test", :A)

      assert_equal [:SERVFAIL, []], [answer.rcode, answer.answers]
      assert_equal Heddle::Cancelled, ended.pop(timeout: LIMIT)
      wait_until("the end of the program") { dns.server.under_way.zero? }
      assert_equal 1, dns.server.statistics[:late]
    end
  end

  def test_beyond_the_queries_under_way_clients_are_refused
    gate = Thread::Queue.new
    serving(->(query) { query.answer(gate.pop) }, queries: 3) do |dns|
      waiting = Array.new(3) { Thread.new { dns.ask("a.test", :A) } }
      wait_until("three queries") { dns.server.under_way == 3 }

      assert_equal :REFUSED, dns.ask("b.test", :A).rcode
      3.times { gate.push("192.0.2.1") }

      assert_equal [:NOERROR] * 3, waiting.map { |thread| thread.value.rcode }
      assert_equal 1, dns.server.statistics[:refused]
    end
  end

  def test_one_client_leaves_half_of_the_queries_under_way_to_others
    gate = Thread::Queue.new
    serving(->(query) { query.answer(gate.pop) }, queries: 4, rate_exempt: []) do |dns|
      first, second = [66, 67].map { |number| UDPSocket.new.tap { |one| one.bind("127.0.0.#{number}", 0) } }
      [first, second].each { |socket| socket.connect("127.0.0.1", dns.port) }
      query = DNS::Message.query("a.test", :A).encode
      3.times { first.send(query, 0) }

      assert_equal :REFUSED, DNS::Message.parse(first.recv(512)).rcode
      assert_equal 2, dns.server.under_way
      second.send(query, 0)
      wait_until("the other's query") { dns.server.under_way == 3 }
      2.times { gate.push("192.0.2.1") }
      2.times { first.recv(512) }
      first.send(query, 0)
      wait_until("a further query") { dns.server.under_way == 2 }
    ensure
      gate.close
      [first, second].each { |one| one&.close }
    end
  end

  # Whoever forges the addresses of datagrams is many clients.
  def test_queries_over_udp_leave_a_quarter_of_those_under_way_to_tcp
    gate = Thread::Queue.new
    serving(->(query) { query.answer(gate.pop) }, queries: 4, rate_exempt: []) do |dns|
      clients = [66, 67, 68, 69].map { |number| UDPSocket.new.tap { |one| one.bind("127.0.0.#{number}", 0) } }
      clients.each do |socket|
        socket.connect("127.0.0.1", dns.port)
        socket.send(DNS::Message.query("a.test", :A).encode, 0)
      end
      response = DNS::Message.parse(clients.last.recv(512))

      assert_predicate response, :truncated?
      assert_equal [:NOERROR, 3, 1], [response.rcode, dns.server.under_way, dns.server.statistics[:truncated]]
      dns.tcp do |socket|
        query = DNS::Message.query("a.test", :A).encode
        socket.write([query.bytesize].pack("n") << query)
        wait_until("a query over TCP") { dns.server.under_way == 4 }
      end
    ensure
      gate.close
      clients&.each(&:close)
    end
  end

  def test_an_error_of_the_program_is_servfail_and_is_reported
    errors = Thread::Queue.new
    program = ->(query) { query.type == :A ? raise("planned") : query.answer(DNS::Data::AAAA.new("none")) }
    serving(program, on_error: ->(error, query) { errors.push([error.class, query.name]) }) do |dns|
      assert_equal :SERVFAIL, dns.ask("a.test", :A).rcode
      assert_equal [RuntimeError, "a.test"], errors.pop
      assert_equal :SERVFAIL, dns.ask("b.test", :AAAA).rcode
      assert_equal [DNS::MalformedError, "b.test"], errors.pop
    end
  end

  # nil in place of a name raises NoMethodError when the response is written.
  def test_a_response_with_wrong_data_is_servfail_and_leaves_its_connection_usable
    serving(->(query) { query.answer([10, nil], type: :MX) }, on_error: ->(*) {}) do |dns|
      dns.tcp do |socket|
        socket.timeout = 10
        socket.write(framed(DNS::Message.query("a.test", :MX).encode))
        socket.close_write

        assert_equal :SERVFAIL, read_framed(socket).rcode
        assert_nil socket.read(1)
      end
    end
  end

  # RSpec::Mocks::MockExpectationError, SystemStackError.
  def test_an_error_that_is_not_a_standard_error_ends_its_query_only
    errors = Thread::Queue.new
    program = ->(query) { query.type == :A ? raise(Class.new(Exception), "planned") : query.answer("::1") }
    serving(program, on_error: ->(error, _) { errors.push(error.message) }) do |dns|
      assert_equal :SERVFAIL, dns.ask("a.test", :A).rcode
      assert_equal "planned", errors.pop
      assert_equal :NOERROR, dns.ask("b.test", :AAAA).rcode
    end
  end

  def test_a_query_to_which_the_program_says_nothing_is_refused
    serving(->(_) {}) { |dns| assert_equal :REFUSED, dns.ask("a.test", :A).rcode }
  end

  def test_queries_can_be_matched_by_network
    program = lambda do |query|
      case query
      in { name: /\A(.+)\.wiki\z/, type: :TXT } then query.answer(Regexp.last_match(1))
      in { name: "inner.test" } if query.from?("loopback") then query.answer("10.0.0.7")
      in { name: "outer.test" } if query.from?(["192.0.2.0/24", "2001:db8::/32"]) then query.answer("10.0.0.8")
      in { client: "127.0.0.1", transport: :udp } then query.answer("192.0.2.1")
      end
    end
    serving(program) do |dns|
      assert_equal "ruby", dns.ask("ruby.wiki", :TXT).answers.first.data.text
      addresses = %w[inner.test outer.test].map { |name| dns.ask(name, :A).answers.first.data.address }

      assert_equal %w[10.0.0.7 192.0.2.1], addresses
    end
  end

  def test_tcp_answers_many_queries_of_one_connection_out_of_order
    gate = Thread::Queue.new
    serving(->(query) { query.answer(query.name == "slow.test" ? gate.pop : "192.0.2.1") }) do |dns|
      queries = %w[slow.test one.test two.test].map { |name| DNS::Message.query(name, :A) }
      dns.tcp do |socket|
        framed(*queries.map(&:encode)).each_char { |byte| socket.write(byte) } # in the smallest pieces
        first = [read_framed(socket), read_framed(socket)].map(&:id)

        assert_equal queries.drop(1).map(&:id).sort, first.sort
        gate.push("192.0.2.2")

        assert_equal queries.first.id, read_framed(socket).id
        socket.write(framed(DNS::Message.query("again.test", :A).encode))

        assert_equal "again.test", read_framed(socket).question.name
      end
    end
  end

  # Two writes would be two segments, for which some clients do not wait (RFC 7766, section 8).
  def test_tcp_answers_have_length_and_message_in_one_write
    serving(->(query) { query.answer("x" * 3_000, type: :TXT) }) do |dns|
      dns.tcp do |socket|
        10.times do
          socket.write(framed(DNS::Message.query("a.test", :TXT).encode))
          bytes = socket.readpartial(65_535)

          assert_equal bytes.bytesize - 2, bytes.unpack1("n")
          refute_predicate DNS::Message.parse(bytes.byteslice(2..)), :truncated?
        end
      end
    end
  end

  def test_a_client_that_ended_its_part_gets_its_answers
    gate = Thread::Queue.new
    serving(->(query) { query.answer(gate.pop) }) do |dns|
      dns.tcp do |socket|
        socket.write(framed(DNS::Message.query("a.test", :A).encode))
        socket.close_write
        wait_until("the query") { dns.server.under_way == 1 }
        gate.push("192.0.2.1")

        assert_equal "192.0.2.1", read_framed(socket).answers.first.data.address
        assert_nil socket.read(1)
      end
    end
  end

  def test_a_response_that_cannot_be_written_takes_nothing_from_the_next_on_its_connection
    gate = Thread::Queue.new
    program = ->(query) { query.answer(query.name == "bad.test" ? "no address" : gate.pop) }
    serving(program, on_error: ->(*) {}) do |dns|
      dns.tcp do |socket|
        socket.write(framed(*%w[slow.test bad.test].map { |name| DNS::Message.query(name, :A).encode }))
        socket.close_write

        assert_equal ["bad.test", :SERVFAIL], read_framed(socket).then { |answer| [answer.question.name, answer.rcode] }
        gate.push("192.0.2.1")

        assert_equal "192.0.2.1", read_framed(socket).answers.first.data.address
      end
    end
  end

  def test_idle_connections_are_closed
    serving(->(query) { query.answer("192.0.2.1") }, tcp_idle: 1) do |dns|
      dns.tcp do |socket|
        socket.write(framed(DNS::Message.query("a.test", :A).encode))

        assert_equal "a.test", read_framed(socket).question.name
        assert_nil socket.read(1)
      end
      dns.tcp { |socket| assert_nil socket.read(1) }
      dns.tcp do |socket|
        socket.write("\x00") # half of a length

        assert_nil socket.read(1)
      end
    end
  end

  def test_a_query_that_trickles_in_does_not_keep_its_connection_open
    serving(->(query) { query.answer("192.0.2.1") }, tcp_idle: 0.2) do |dns|
      dns.tcp do |socket|
        socket.write("\xff\xff")
        sent = 0
        until socket.wait_readable(0.02)
          flunk "#{sent} bytes of a query have kept the connection open" if (sent += 1) > 500

          socket.write("\x00")
        end

        assert_nil begin
          socket.read(1)
        rescue Errno::ECONNRESET
          nil
        end
      end
    end
  end

  def test_a_client_has_so_many_connections_at_most
    serving(->(query) { query.answer("192.0.2.1") }, tcp_per_client: 2) do |dns|
      kept = Array.new(2) { TCPSocket.new("127.0.0.1", dns.port) }
      kept.each do |socket|
        socket.write(framed(DNS::Message.query("a.test", :A).encode))
        read_framed(socket)
      end
      dns.tcp do |socket|
        socket.write(framed(DNS::Message.query("b.test", :A).encode))

        assert_empty(begin
          socket.read
        rescue Errno::ECONNRESET
          ""
        end)
      end
      assert_equal 1, dns.server.statistics[:rejected_connections]
    ensure
      kept&.each(&:close)
    end
  end

  def test_silent_connections_count_for_their_client
    serving(->(query) { query.answer("192.0.2.1") }, tcp_per_client: 2) do |dns|
      silent = Array.new(2) { TCPSocket.new("127.0.0.1", dns.port) }
      wait_until("both are accepted") { dns.server.tcp_accepted == 2 }
      dns.tcp { |socket| assert_empty read_rest(socket) }
      silent.shift.close
      wait_until("one has left") { dns.server.tcp_connections == 1 }
      dns.tcp do |socket|
        socket.write(framed(DNS::Message.query("a.test", :A).encode))

        assert_equal "a.test", read_framed(socket).question.name
      end
    ensure
      silent&.each(&:close)
    end
  end

  def test_connection_that_was_idle_for_longest_is_closed_at_the_limit
    serving(->(query) { query.answer("192.0.2.1") }, tcp_connections: 2, tcp_idle: 600) do |dns|
      silent = Array.new(2) do |i|
        TCPSocket.new("127.0.0.1", dns.port).tap { wait_until("accepted") { dns.server.tcp_accepted == i + 1 } }
      end
      dns.tcp do |socket|
        socket.write(framed(DNS::Message.query("a.test", :A).encode))

        assert_equal "a.test", read_framed(socket).question.name
      end
      assert silent[0].wait_readable(5)
      assert_nil silent[0].read(1)
      refute silent[1].wait_readable(0)
    ensure
      silent&.each(&:close)
    end
  end

  def test_addresses_are_those_of_the_running_server
    server = DNS::Server.new("127.0.0.1:0") { nil }
    found = Array.new(2) do
      running = nil
      Heddle.run { server.run { |one| (running = one.addresses.size) && one.close } }
      [running, server.addresses.size]
    end

    assert_equal [[1, 0], [1, 0]], found
  end

  def test_addresses_of_a_64_are_one_client
    server = DNS::Server.new("127.0.0.1:0") { nil }
    keys = %w[2001:db8::1 2001:db8::2:0:0:1 2001:db8:0:1::1 192.0.2.1 192.0.2.2].map do |address|
      server.source_key(IPAddr.new(address).hton)
    end

    assert_equal [keys[0], 4], [keys[1], keys.uniq.size]
  end

  def read_rest(socket)
    socket.read
  rescue Errno::ECONNRESET
    ""
  end

  def test_a_message_without_a_header_ends_nothing_over_tcp
    serving(->(query) { query.answer("192.0.2.1") }) do |dns|
      dns.tcp do |socket|
        socket.write("\0\0\0\3abc".b, framed(DNS::Message.query("a.test", :A).encode))

        assert_equal "a.test", read_framed(socket).question.name
      end
    end
  end

  def test_a_wildcard_address_answers_from_the_address_that_was_asked
    { "0.0.0.0:0" => "127.0.0.3", "[::]:0" => "::1" }.each do |listen, asked|
      serving(->(query) { query.answer("192.0.2.1") }, listen) do |dns|
        socket = UDPSocket.new(asked.include?(":") ? :INET6 : :INET)
        socket.connect(asked, dns.port) # takes nothing from others
        socket.send(DNS::Message.query("a.test", :A).encode, 0)

        assert socket.wait_readable(LIMIT), "no answer from #{asked}"
      ensure
        socket&.close
      end
    end
  end

  def test_ipv6_clients
    serving(->(query) { query.answer(query.client, type: :TXT) }, "[::1]:0") do |dns|
      socket = UDPSocket.new(:INET6)
      socket.connect("::1", dns.port)
      socket.send(DNS::Message.query("a.test", :TXT).encode, 0)
      socket.wait_readable(LIMIT)

      assert_equal "::1", DNS::Message.parse(socket.recv(512)).answers.first.data.text
    ensure
      socket&.close
    end
  end

  def test_an_address_that_is_none_is_named
    ["", "localhost:53", "127.0.0.1", "127.0.0.1:65536", "::1:53"].each do |wrong|
      error = assert_raises(ArgumentError) { DNS::Server.new(wrong) { nil } }

      assert_match(/#{Regexp.escape(wrong.inspect)} is not an address to listen on: write/, error.message)
    end
  end

  def test_a_server_that_is_closed_as_soon_as_it_listens_ends
    server = DNS::Server.new("127.0.0.1:0") { nil }
    ended = Heddle.run do
      Heddle.timeout(LIMIT) do
        server.run(&:close)
        :ended
      end
    end

    assert_equal :ended, ended
  end

  def test_close_ends_queries_under_way
    gate = Thread::Queue.new
    serving(->(query) { query.answer(gate.pop) }) do |dns|
      socket = UDPSocket.new
      socket.send(DNS::Message.query("a.test", :A).encode, 0, "127.0.0.1", dns.port)
      wait_until("the query") { dns.server.under_way == 1 }
    ensure
      socket&.close
    end
  end
end
