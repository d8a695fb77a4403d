# frozen_string_literal: true

# test: each mode

require "test_helper"
require "server/server_helpers"
require "support/h2_client"
require "open3"

# CONTENT_LENGTH and HTTP_TRANSFER_ENCODING: Rails reads no body of a request that has neither.
class ContentLengthTest < Minitest::Test
  include ServerHelpers

  SMALL = "a=1"
  # More than the largest buffer, so it is in a file, or streamed.
  LARGE = "x" * 300_000
  PROTOCOLS = %w[--http1.1 --http2-prior-knowledge].freeze
  APP = lambda do |env|
    size = env["rack.input"].read.bytesize
    values = env.values_at("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING")
    [200, { "content-type" => "text/plain" }, [[*values, size].inspect]]
  end

  def curl(protocol, body, *flags)
    Open3.capture2e("curl", "-sS", protocol, *flags, "http://127.0.0.1:#{port}/", stdin_data: body).first
  end

  def send_without_length(protocol, body) = curl(protocol, body, "-X", "POST", "-T", "-")

  def send_with_length(protocol, body) = curl(protocol, body, "--data-binary", "@-")

  def test_a_complete_body_has_its_size_as_content_length_with_every_framing
    serving(APP) do
      PROTOCOLS.product([SMALL, LARGE, ""]).each do |protocol, body|
        expected = [body.bytesize.to_s, nil, body.bytesize].inspect

        assert_equal expected, send_without_length(protocol, body), protocol
        assert_equal expected, send_with_length(protocol, body), protocol
      end
    end
  end

  def test_a_streamed_body_of_unknown_length_is_called_chunked_on_both_protocols
    serving(APP, stream_bodies: %w[all]) do
      PROTOCOLS.each do |protocol|
        assert_equal [nil, "chunked", LARGE.bytesize].inspect, send_without_length(protocol, LARGE), protocol
        assert_equal [LARGE.bytesize.to_s, nil, LARGE.bytesize].inspect, send_with_length(protocol, LARGE), protocol
      end
    end
  end

  # Gems that measure how long a request was in queues subtract it.
  [{ mode: :fiber }, { mode: :thread }, { mode: :single }].each do |options|
    define_method("test_time_of_a_slow_body_is_in_the_env_on_both_protocols_in_mode_#{options[:mode]}") do
      app = ->(env) { [200, {}, [env["puma.request_body_wait"].inspect]] }
      serving(app, **options) do
        waits = [slow_http1_body, slow_http2_body].map { |text| Float(text) }

        waits.each { |wait| assert_includes 100..20_000, wait }
        assert_equal "nil", get("/").body
      end
    end
  end

  PAUSE = 0.15

  def slow_http1_body
    socket = connect
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\na")
    pause
    socket.write("b")
    read_all(socket)[/[^\n]+\z/]
  end

  def slow_http2_body
    client = H2Client.new(connect)
    client.send_preface
    client.send_frame("HEADERS eh 1 :method=POST :scheme=http :authority=localhost :path=/")
    pause
    client.send_frame(%(DATA es 1 "ab"))
    frame = client.read_frame until frame&.type == "DATA"
    frame.payload
  ensure
    client&.close
  end

  # The client's own, once the server has the head.
  def pause
    until_statistics { |found| found[:transit] == 1 }
    sleep(PAUSE)
  end

  def test_a_request_without_a_body_has_neither
    serving(->(env) { [200, {}, [env.slice("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING").size.to_s]] }) do
      PROTOCOLS.each { |protocol| assert_equal "0", curl(protocol, ""), protocol }
    end
  end
end
