# frozen_string_literal: true

# test: each selector
# test: sanitize
# test: smoke

require_relative "support/sockets_case"
require "heddle/net/networks"
require "heddle/net/tls"
require "support/certificates"
require "support/tls_records"

# Connections over TLS: the handshake takes no fiber, and afterwards they are like any others.
module TLSTests
  # What a test shows its clients; made once, as keys take time.
  class Shown
    def self.pair = @pair ||= TestCertificates.make("localhost")

    def self.other
      @other ||= TestCertificates.make("other.example", "*.wild.example", key: OpenSSL::PKey::RSA.new(2_048))
    end

    # @return [Object] what Certificates wants
    def self.source((certificate, key))
      Struct.new(:load, :stamp).new(Heddle::Net::TLS::KeyPair.new(certificate:, chain: [], key:), nil)
    end
  end

  def acceptor(*pairs, **)
    pairs = [Shown.pair] if pairs.empty?
    Heddle::Net::TLS.new(Heddle::Net::TLS::Certificates.new(pairs.map { |pair| Shown.source(pair) }, **))
  end

  # The same as `serve`, with TLS.
  def serve_tls(handler, tls: acceptor, proxies: nil, **options)
    scheduled do |scheduler|
      listener = TCPServer.new("127.0.0.1", 0)
      sockets = sockets_with(scheduler, handler, **options)
      sockets.listen(listener, tls:, proxies:)
      yield Heddle::TestHelpers::SocketsCase::Server.new(sockets, listener, scheduler)
    ensure
      sockets&.close
      listener&.close
    end
  end

  def client_of(server, socket: server.connect, name: nil, session: nil, **settings)
    context = OpenSSL::SSL::SSLContext.new
    context.set_params(verify_mode: OpenSSL::SSL::VERIFY_NONE, **settings)
    client = OpenSSL::SSL::SSLSocket.new(socket, context)
    client.hostname = name if name
    client.session = session if session
    client.sync_close = true
    client.connect
    client.extend(Heddle::TestHelpers::HTTPClient)
  end

  def test_bytes_are_echoed_over_tls
    serve_tls(echo) do |server|
      client = client_of(server)
      ["a", "b" * 10_000, "c" * 100_000].each do |text|
        assert_equal text, client.ask(body: text).answer
      end
      assert_equal [1, 0], [server.sockets.handshakes, server.sockets.failed_handshakes]
      client.close
      until_true { server.sockets.connections.zero? }
    end
  end

  def test_a_session_is_resumed_until_its_key_is_the_fourth_newest
    serve_tls(echo) do |server|
      talk = lambda do |session|
        client = client_of(server, session:, max_version: OpenSSL::SSL::TLS1_2_VERSION)
        [client.session_reused?, client.session]
      ensure
        client&.close
      end
      session = talk.call(nil).last
      resumed = Array.new(4) do
        talk.call(session).first.tap { Heddle::Net::TLS::TicketKeys.renew(0) }
      end

      assert_equal [true, true, true, false], resumed
    end
  end

  def test_a_ticket_resumes_sessions_of_its_own_name_only
    serve_tls(echo, tls: acceptor(Shown.pair, Shown.other)) do |server|
      [OpenSSL::SSL::TLS1_2_VERSION, OpenSSL::SSL::TLS1_3_VERSION].each do |max_version|
        sessions = %w[localhost other.example].to_h { |name| [name, session_of(server, name, nil, max_version).last] }
        names = sessions.keys.product(sessions.keys)
        resumed = names.select { |from, to| session_of(server, to, sessions[from], max_version).first }

        assert_equal [%w[localhost localhost], %w[other.example other.example]], resumed
      end
    end
  end

  # Whether it was resumed, and the session, of which TLS 1.3 tells after the first answer.
  def session_of(server, name, session, max_version)
    client = client_of(server, name:, session:, max_version:)
    client.ask.answer
    [client.session_reused?, client.session]
  ensure
    client&.close
  end

  def test_connection_that_a_callback_of_its_handshake_closes_is_no_longer_counted
    closing = acceptor
    closed = nil
    server = nil
    closing.define_singleton_method(:socket) do |descriptor|
      context = OpenSSL::SSL::SSLContext.new
      context.cert, context.key = Shown.pair
      context.servername_cb = lambda do |*|
        server.sockets.close
        closed = true
      end
      socket = TCPSocket.for_fd(descriptor)
      socket.autoclose = false
      OpenSSL::SSL::SSLSocket.new(socket, context)
    end
    serve_tls(echo, tls: closing) do |one|
      server = one
      assert_raises(OpenSSL::SSL::SSLError, SystemCallError) { client_of(server, name: "localhost") }
    end

    assert closed
  end

  def test_ticket_keys_live_for_their_time_and_only_their_creator_renews_them
    serve_tls(echo) do |_server|
      refute Heddle::Net::TLS::TicketKeys.renew
      child = fork { exit!(Heddle::Net::TLS::TicketKeys.renew(0) ? 1 : 0) }

      assert_predicate Process.wait2(child).last, :success?
    end
  end

  def test_strings_of_every_size_arrive_as_they_are
    random = Random.new(1)
    strings = Array.new(400) { |i| (i % 256).chr.b * random.rand([1, 10, 1_000, 40_000].sample(random:)) }
    expected = strings.join
    handler = lambda do |exchange|
      exchange.write(strings)
      reply(exchange, "")
    end
    serve_tls(handler) do |server|
      client = client_of(server).ask
      received = +""
      while received.bytesize < expected.bytesize
        received << client.read([random.rand(1..50_000), expected.bytesize - received.bytesize].min)
        sleep 0.001 if random.rand(50) == 0
      end

      assert_equal [expected.bytesize, true], [received.bytesize, received == expected]
    end
  end

  def test_two_fibers_read_and_write_at_once
    handler = lambda do |exchange|
      done = Thread::Queue.new
      Fiber.schedule do
        exchange.write("w" * 3_000_000)
        done << true
      end
      assert_equal 3_000_000, body_of(exchange).bytesize
      done.pop
      exchange.write("done")
      exchange.close
    end
    serve_tls(handler, service: engine(stream_bodies: true)) do |server|
      client = client_of(server)
      Fiber.schedule { client.ask(body: "r" * 3_000_000) }
      received = client.read(3_000_004)

      assert_equal [3_000_004, "done"], [received.bytesize, received[-4..]]
    end
  end

  def test_a_handshake_has_its_time_and_takes_no_fiber
    serve_tls(echo, handshake_timeout: 1) do |server|
      before = server.scheduler.fiber_count
      silent = server.connect
      slow = server.connect
      slow.write("\x16\x03\x01".b)
      until_true { server.sockets.connections == 2 }

      assert_equal before, server.scheduler.fiber_count
      started = now

      assert_nil silent.read(1)
      assert_nil slow.read(1)
      assert_operator now - started, :<, Scheduled::LIMIT / 2
      assert_equal [0, 0], [server.sockets.connections, server.sockets.handshakes]
    end
  end

  def test_invalid_handshake_bytes_fail_and_are_counted
    serve_tls(echo) do |server|
      ["\x16\x03\x01\x00\x05hello".b, "\x00".b * 40].each do |bytes|
        client = server.connect
        client.write(bytes)
        error_of(SystemCallError) { client.read }
      end
      plain = server.connect
      plain.write("hello")
      error_of(SystemCallError) { plain.read }
      until_true { server.sockets.connections.zero? }

      assert_equal [0, 3], [server.sockets.handshakes, server.sockets.failed_handshakes]
    end
  end

  def test_addresses_take_turns_in_their_handshakes
    begun = begin_handshakes((["192.0.2.1"] * 9).insert(4, "192.0.2.2"))

    assert_equal 10, begun.size
    assert_includes [0, 1], begun.index("192.0.2.2")
  end

  def test_a_client_that_has_left_before_its_handshake_began_costs_none
    begun = 0
    recording = acceptor
    recording.define_singleton_method(:socket) { |descriptor| super(descriptor).tap { begun += 1 } }
    serve_tls(echo, tls: recording) do |server|
      client = server.connect
      until_true { server.sockets.connections == 1 }
      client.write_nonblock("\x16\x03\x01")
      client.close
      until_true { server.sockets.connections.zero? }

      assert_equal 0, begun
    end
  end

  def test_what_ended_handshakes_leave_counts_for_the_garbage_collector
    serve_tls(echo) do |server|
      GC.disable
      before = GC.stat(:malloc_increase_bytes)
      clients = Array.new(50) { server.connect.tap { |client| client.write("\x16\x03\x01\x00\x05hello") } }
      until_true { server.sockets.failed_handshakes == 50 }
      clients.each(&:close)

      assert_operator GC.stat(:malloc_increase_bytes) - before, :>, 50 * 16_384
    ensure
      GC.enable
    end
  end

  def test_waiting_handshakes_that_are_closed_have_no_turn
    begun = begin_handshakes(%w[192.0.2.1 192.0.2.2 192.0.2.2 192.0.2.3], &:shutdown_idle)

    assert_equal 1, begun.size
  end

  def test_a_handshake_in_records_of_one_byte_fails
    serve_tls(echo, handshake_timeout: 600) do |server|
      records = TLSRecords.new(socket = server.connect)
      records.begin_handshake_in_bytes

      error_of(SystemCallError) { assert_nil socket.read(1) }
      assert_equal 1, server.sockets.failed_handshakes
      records.close
    end
  end

  def test_a_client_of_short_records_has_only_its_share_read_in_a_turn
    sent = Thread::Queue.new
    parts = []
    handler = lambda do |exchange|
      sent.pop
      parts << exchange.readpartial(65_536).bytesize while parts.sum < 1_000
      exchange.write("done")
    end
    serve_tls(handler) do |server|
      records = TLSRecords.new(server.connect).connect
      records.write_bytes(Heddle::TestHelpers::HTTPClient.request)
      sleep 0.001 until sent.num_waiting == 1
      records.write_bytes("r" * 1_000)
      sent << true

      assert_equal "done", records.client.read(4)
      assert_equal [1_000, 64], [parts.sum, parts.max]
      records.close
    end
  end

  def test_a_socket_that_is_taken_over_has_what_was_not_read
    taken = Thread::Queue.new
    serve_tls(->(exchange) { taken << exchange.detach }) do |server|
      client = client_of(server)
      client.write("#{Heddle::TestHelpers::HTTPClient.request}\xFF\x00zdef".b)
      socket = taken.pop

      assert_instance_of OpenSSL::SSL::SSLSocket, socket
      assert_equal "\xFF\x00zdef".b, socket.read(6)
      socket.write("hello")
      socket.close

      assert_equal "hello", client.read
      assert_equal 0, server.sockets.connections
    end
  end

  def test_the_host_that_a_client_names_chooses_the_certificate
    serve_tls(echo, tls: acceptor(Shown.pair, Shown.other)) do |server|
      { nil => "localhost", "localhost" => "localhost", "other.example" => "other.example",
        "OTHER.example" => "other.example", "a.wild.example" => "other.example",
        "a.b.wild.example" => "localhost", "unknown.example" => "localhost" }.each do |name, shown|
        client = client_of(server, name:)

        assert_equal "/CN=#{shown}", client.peer_cert.subject.to_s, name.inspect
        client.close
      end
    end
  end

  def test_a_host_name_may_have_keys_of_two_types
    rsa = TestCertificates.make("localhost", key: OpenSSL::PKey::RSA.new(2_048))
    serve_tls(echo, tls: acceptor(Shown.pair, rsa)) do |server|
      { "aECDSA" => "id-ecPublicKey", "aRSA" => "rsaEncryption" }.each do |cipher, type|
        client = client_of(server, max_version: OpenSSL::SSL::TLS1_2_VERSION, ciphers: "ECDHE+#{cipher}")

        assert_equal type, client.peer_cert.public_key.oid
        client.close
      end
    end
  end

  def test_keys_of_every_type
    ca = TestCertificates.make("ca")
    ["secp384r1", 2_048, "ED25519"].each do |kind|
      key = case kind
            when Integer then OpenSSL::PKey::RSA.new(kind)
            when "ED25519" then OpenSSL::PKey.generate_key(kind)
            else OpenSSL::PKey::EC.generate(kind)
            end
      serve_tls(echo, tls: acceptor(TestCertificates.make("localhost", key:, ca:))) do |server|
        client = client_of(server)

        assert_equal "x", client.ask.answer, key.oid
        client.close
      end
    end
  end

  def test_a_stop_closes_those_that_have_said_nothing_and_lets_others_shake_hands
    serve_tls(echo, handshake_timeout: 60) do |server|
      silent = server.connect
      begun = server.connect
      begun.write("\x16\x03\x01".b)
      until_true { server.sockets.connections == 2 && read_by_its_peer?(begun) }
      server.sockets.stop_listening
      server.sockets.shutdown_idle

      assert_nil silent.read(1)
      assert_equal 1, server.sockets.connections
      begun.close
      until_true { server.sockets.connections.zero? }
    end
  end

  def test_closing_everything_in_the_middle_of_handshakes
    serve_tls(echo) do |server|
      clients = Array.new(20) { server.connect }
      clients.each { |client| client.write("\x16\x03\x01".b) }
      until_true { server.sockets.connections == 20 }
      server.sockets.close
      clients.each { |client| error_of(SystemCallError) { assert_nil client.read(1) } }
    end
  end

  # On a busy machine a handshake takes longer than the usual ten seconds then.
  def test_tls_survives_garbage_collection_in_every_step
    serve_tls(echo, handshake_timeout: self.class::LIMIT) do |server|
      GC.stress = true

      assert_equal "hello", client_of(server).ask("hello").answer
    ensure
      GC.stress = false
    end
  end

  def test_objects_that_are_moved
    serve_tls(echo) do |server|
      clients = Array.new(10) { client_of(server) }
      3.times do |round|
        GC.verify_compaction_references(expand_heap: false, toward: :empty) if GC.respond_to?(:compact)
        clients.each { |client| assert_equal round.to_s, client.ask(round.to_s).answer }
      end
    end
  end

  private

  # Begins a handshake for each address at the same moment.
  # @yieldparam sockets [Heddle::Net::Sockets] when the server begins the first one
  # @return [Array<String>] the addresses in the order in which the server began with them
  def begin_handshakes(addresses)
    begun = []
    recording = acceptor
    sockets = nil
    recording.define_singleton_method(:socket) do |descriptor|
      begun << Socket.for_fd(descriptor).tap { |socket| socket.autoclose = false }.remote_address.ip_port
      super(descriptor)
    end
    recording.define_singleton_method(:handshake) do |socket|
      yield sockets if block_given? && begun.size == 1
      super(socket)
    end
    serve_tls(echo, tls: recording, proxies: Heddle::Net::Networks.new(["loopback"])) do |server|
      sockets = server.sockets
      clients = addresses.map { server.connect }
      until_true { sockets.connections == addresses.size }
      ports = clients.zip(addresses).to_h do |client, address|
        client.write_nonblock("PROXY TCP4 #{address} 192.0.2.9 1 443\r\n\x16\x03\x01")
        [client.local_address.ip_port, address]
      end
      until_true { begun.size == sockets.connections }
      clients.each(&:close)
      begun.map { |port| ports[port] }
    end
  end

  # Has what this client wrote left the kernel on both ends?
  def read_by_its_peer?(client)
    ports = [client.local_address, client.remote_address].map { |address| format("%04X", address.ip_port) }
    ends = File.foreach("/proc/net/tcp").map(&:split).select { |line| line[1, 2].map { _1[-4..] }.sort == ports.sort }
    ends.map { |line| line[4] } == ["00000000:00000000"] * 2 # tx_queue:rx_queue
  end
end

Heddle::TestHelpers.with_each_event_set(TLSTests)
