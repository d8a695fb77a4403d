# frozen_string_literal: true

require "test_helper"
require_relative "tls_helpers"
require "digest"

# What curl does over HTTP/2, in plain text by prior knowledge and over TLS.
class Http2CurlTest < Minitest::Test
  include TLSHelpers

  LARGE = ("0123456789abcdef" * 1_024 * 768).freeze # 12 MiB
  APP = lambda do |env|
    body = env["PATH_INFO"] == "/large" ? LARGE : Digest::SHA256.hexdigest(env["rack.input"].read.to_s)
    [200, { "content-type" => "text/plain", "x-trailer" => env["HTTP_X_CHECKSUM"].to_s }, [body]]
  end

  def each_way
    serving(APP, lint: false) do
      yield ->(*flags) { capture("--http2-prior-knowledge", *flags, "http://127.0.0.1:#{port}") }
    end
    serving_tls(APP, lint: false) { yield ->(*flags) { capture("--http2", "-k", *flags, "https://127.0.0.1:#{port}") } }
  end

  def capture(*flags, url)
    input = flags.last.is_a?(Hash) ? flags.pop.fetch(:input) : ""
    path = flags.last.start_with?("/") ? flags.pop : "/"
    output, status = Open3.capture2("curl", "-sS", *flags, "#{url}#{path}", stdin_data: input)

    assert_predicate status, :success?
    output
  end

  def test_head_and_get
    each_way do |curl|
      assert_match(%r{\AHTTP/2 200}, curl.call("-I", "/"))
      assert_equal Digest::SHA256.hexdigest(""), curl.call("/")
    end
  end

  def test_a_large_download
    each_way { |curl| assert_equal Digest::SHA256.hexdigest(LARGE), Digest::SHA256.hexdigest(curl.call("/large")) }
  end

  def test_a_large_upload_from_a_stream_of_unknown_length
    each_way do |curl|
      assert_equal Digest::SHA256.hexdigest(LARGE), curl.call("-T", "-", "/", { input: LARGE })
    end
  end

  def test_a_post_that_waits_for_100_continue
    each_way do |curl|
      output = curl.call("-i", "-H", "Expect: 100-continue", "--expect100-timeout", "60", "--data-binary", "@-", "/",
                         { input: "x" * 100_000 })

      assert_match(%r{\AHTTP/2 100 ?\r\n\r\nHTTP/2 200}, output)
      assert_equal Digest::SHA256.hexdigest("x" * 100_000), output.lines.last
    end
  end
end
