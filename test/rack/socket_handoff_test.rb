# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/server_helpers"
require "support/web_socket_client"

# How a worker reads the descriptions of sessions that other workers hand off: these may be of another version.
class SocketHandoffTest < Minitest::Test
  include ServerHelpers

  # The first byte of a description.
  WEBSOCKET = 2
  EVENT_STREAM = 3
  UNKNOWN_VERSION = 200

  # A client whose handshake is long over.
  class OpenClient < WebSocketClient
    def initialize(io) # rubocop:disable Lint/MissingSuper -- which sends the handshake
      @io = io
      @buffer = "".b
    end
  end

  # Says its state.
  class Handler
    def self.load(state) = new(state)

    attr_reader :dump

    def initialize(state) = @dump = state

    def on_open(client)
      client.subscribe("handoff test", as: :json)
      Handler.client = client
      client.write("open")
    end

    def on_message(client, _message) = client.write(@dump)

    class << self
      attr_accessor :client
    end
  end

  def setup
    Heddle::PubSub::History.open(1 << 20, 100, 300)
    @giving, @given = UNIXSocket.pair(:SEQPACKET)
    @sending, @taking = UNIXSocket.pair(:SEQPACKET)
  end

  def teardown
    [@giving, @given, @sending, @taking].each(&:close)
  end

  def with_server
    app = lambda do |env|
      case env["PATH_INFO"]
      when "/give" then [200, {}, [Handler.client.hand_off(@giving, Handler.name, "grüße").inspect]]
      when "/take" then [200, {}, [server.accept_handoff(@taking).inspect]]
      else Heddle::WebSocket.upgrade(env, Handler.new("new"))
      end
    end
    serving(app, lint: false) { yield capture }
  end

  # @return [Array(String, String)] the message's head and the description of a socket
  def capture
    client = WebSocketClient.new(connect, "/")
    client.message
    Thread.pass until get("/give").body == ":done"
    message, = @given.recvmsg(1 << 17, scm_rights: true)
    client.io.close
    head = message.byteslice(0, message.unpack("LL")[1])
    [head, message.byteslice(head.bytesize..)]
  end

  # Hands a connection off with this description.
  # @return [Socket] the client's side
  def hand_off(head, words)
    listener = TCPServer.new("127.0.0.1", 0)
    client = TCPSocket.new("127.0.0.1", listener.local_address.ip_port)
    given = listener.accept
    head = head.dup.tap { |bytes| bytes[12, 4] = [words.bytesize].pack("L") }
    @sending.sendmsg(head + words, 0, nil, Socket::AncillaryData.unix_rights(given))
    assert_equal "true", get("/take").body
    client
  ensure
    [listener, given].compact.each(&:close)
  end

  # @return [Integer, String, nil] the code of its close frame, what else it got, or nil at its end
  def answer(client)
    bytes = client.readpartial(1_000)
    bytes.getbyte(0) == 0x88 ? bytes.unpack1("@2n") : bytes
  rescue EOFError, Errno::ECONNRESET
    nil
  ensure
    client.close # else the stopping server waits for its close frame
  end

  def ask(socket)
    client = OpenClient.new(socket)
    client.text("what?")
    client.message
  ensure
    socket.close
  end

  def field(bytes) = [bytes.bytesize].pack("L") + bytes.b

  def stream_words(version: 1, chunked: 1, policy: 0, position: "")
    [EVENT_STREAM, version].pack("CC") + field([chunked].pack("L")) + field([policy].pack("L")) +
      field("handoff test") + field("") + field(position)
  end

  def test_a_socket_continues_with_its_state_and_topic
    with_server do |head, words|
      client = OpenClient.new(hand_off(head, words))
      client.text("what?")
      assert_equal "grüße", client.message
      Heddle::PubSub.publish("handoff test", "hello")

      assert_match(/"data":"hello"/, client.message)
      client.io.close
    end
  end

  def test_a_socket_of_an_unknown_version_is_closed_with_1012_and_logged
    with_server do |head, words|
      words.setbyte(1, UNKNOWN_VERSION)

      assert_equal 1012, answer(hand_off(head, words))
      assert_match(/closing a WebSocket: it was handed off by a worker with another version of Heddle/, errors.string)
    end
  end

  def test_socket_whose_handler_fails_to_resume_is_closed_with_1012_and_logged
    with_server do |head, words|
      Handler.define_method(:on_resume) { |_client| raise "no room" }

      assert_equal 1012, answer(hand_off(head, words))
      assert_match(/closing a WebSocket because SocketHandoffTest::Handler#on_resume failed: .*no room/, errors.string)
    ensure
      Handler.remove_method(:on_resume)
    end
  end

  def test_a_truncated_description_closes_the_socket_and_nothing_else
    with_server do |head, words|
      codes = (1...words.bytesize).map { |size| answer(hand_off(head, words.byteslice(0, size))) }

      assert_equal [1012], codes.uniq - [nil]
      assert_equal "grüße", ask(hand_off(head, words))
    end
  end

  def test_random_descriptions_do_no_harm
    random = Random.new(Minitest.seed)
    with_server do |head, words|
      [words, stream_words].each do |valid|
        100.times do
          bytes = valid.dup
          random.rand(1..3).times { bytes.setbyte(random.rand(1...bytes.bytesize), random.rand(256)) }
          hand_off(head, bytes).close
        end
      end
      assert_equal "grüße", ask(hand_off(head, words))
    end
  end

  def test_an_event_stream_continues_and_one_of_an_unknown_version_is_closed_and_logged
    with_server do |head, _|
      client = hand_off(head, stream_words(position: Heddle::PubSub.position("handoff test")))
      Heddle::PubSub.publish("handoff test", "hello")

      assert_match(/\A\h+\r\nid: .*\ndata: hello\n\n\r\n\z/, answer(client))
      assert_nil answer(hand_off(head, stream_words(version: UNKNOWN_VERSION)))
      assert_match(/closing an event stream: it was handed off by a worker with another/, errors.string)
      assert_nil answer(hand_off(head, stream_words(policy: 9)))
    end
  end
end
