# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "net/http"
require "open-uri"
require "openssl"
require "socket"
require "tmpdir"

# R1: existing blocking code of the standard library runs unchanged, and at the same time.
class StandardLibraryTest < Minitest::Test
  include Scheduled

  # An HTTP server on a thread of its own, without a scheduler, that answers only when +count+ requests are there:
  # a client that asks one after the other hangs.
  def with_server(count)
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new do
      clients = Array.new(count) do
        client = server.accept
        nil until client.gets.chomp.empty?
        client
      end
      clients.each do |client|
        client.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")
        client.close
      end
    end
    yield URI("http://127.0.0.1:#{server.local_address.ip_port}/")
  ensure
    thread&.kill&.join
    server&.close
  end

  # A3, D1.
  def test_twenty_net_http_requests_at_once
    with_server(20) do |uri|
      answers = []
      scheduled { 20.times { Fiber.schedule { answers << Net::HTTP.get(uri) } } }

      assert_equal ["hello"] * 20, answers
    end
  end

  def test_open_uri_at_once
    with_server(5) do |uri|
      answers = []
      scheduled { 5.times { Fiber.schedule { answers << uri.open(&:read) } } }

      assert_equal ["hello"] * 5, answers
    end
  end

  def test_net_http_obeys_its_time_limits
    silent = TCPServer.new("127.0.0.1", 0)
    scheduled do
      http = Net::HTTP.new("127.0.0.1", silent.local_address.ip_port)
      http.read_timeout = 0.01
      http.max_retries = 0

      assert_raises(Net::ReadTimeout) { http.get("/") }
    end
  end

  def certificate
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
    certificate.serial = 1
    certificate.public_key = key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    [certificate.sign(key, "SHA256"), key]
  end

  def test_tls_client_and_server_in_one_loop
    bytes = Random.new(2).bytes(300_000)
    received = scheduled do
      context = OpenSSL::SSL::SSLContext.new
      context.cert, context.key = certificate
      server = TCPServer.new("127.0.0.1", 0)
      Fiber.schedule do
        socket = OpenSSL::SSL::SSLSocket.new(server.accept, context)
        socket.accept
        socket.write(bytes)
        socket.close
      end
      client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", server.local_address.ip_port))
      client.connect
      client.read
    end

    assert_equal bytes, received
  end

  def test_dir_file_and_copy_stream
    scheduled do
      Dir.mktmpdir do |folder|
        File.write("#{folder}/a", "one\ntwo\n")
        IO.copy_stream("#{folder}/a", "#{folder}/b")

        assert_equal %w[a b], Dir.children(folder).sort
        assert_equal %W[one\n two\n], File.readlines("#{folder}/b")
        File.open("#{folder}/b", "a") { |file| file << "three\n" }

        assert_equal 3, File.foreach("#{folder}/b").count
      end
    end
  end

  # fiber-scheduler trap 11: O_NONBLOCK belongs to the open file, which a parent's shell may share.
  def test_a_blocking_descriptor_is_waited_for_and_stays_blocking
    require "io/nonblock"
    scheduled do
      reader, writer = IO.pipe
      reader.nonblock = false
      heard = nil
      Fiber.schedule { heard = reader.readpartial(10) }
      sleep 0.001
      writer << "late"
      until_true { heard }

      assert_equal "late", heard
      refute_predicate reader, :nonblock?
    end
  end

  def test_a_regular_file_is_always_ready
    scheduled do
      File.open(__FILE__) do |file|
        assert_same file, file.wait_readable(10)
        assert_equal [[file], [], []], IO.select([file], nil, nil, 10)
      end
    end
  end

  # On Ruby >= 3.4 Happy Eyeballs would resolve names past the scheduler.
  def test_names_are_resolved_through_the_scheduler
    asked = []
    server = TCPServer.new("127.0.0.1", 0)
    resolver = Object.new
    resolver.define_singleton_method(:addresses) { |name| asked.push(name) && ["127.0.0.1"] }
    scheduler = Heddle::Scheduler.new
    scheduler.resolver = resolver
    scheduled(scheduler) { TCPSocket.new("somewhere.example", server.local_address.ip_port).close }

    assert_equal ["somewhere.example"], asked.uniq
  end

  # Switched off once, by the first scheduler of a process: what the program sets afterwards holds.
  def test_a_setting_of_fast_fallback_by_the_program_holds
    out, = ruby(<<~RUBY)
      require "socket"
      require "heddle/scheduler"
      Heddle::Scheduler.new
      exit unless Socket.respond_to?(:tcp_fast_fallback)
      p Socket.tcp_fast_fallback
      Socket.tcp_fast_fallback = true
      Heddle::Scheduler.new
      p Socket.tcp_fast_fallback
    RUBY
    assert_equal RUBY_VERSION < "3.4" ? "" : "false\ntrue\n", out
  end
end
