# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "json"
require "open3"
require_relative "../tls_helpers"

# Which versions of HTTP and TLS the access log names.
class LogProtocolTest < Minitest::Test
  include TLSHelpers

  # @return [String] the line of a request over TLS
  def line_over_tls(format, *flags)
    serving_tls(text, lint: false, protect: [], log_format: format) { curl_tls("/", *flags) }
    log_lines.join
  end

  def line_over_plain(format, *flags)
    serving(text, lint: false, protect: [], log_format: format) do
      Open3.capture2e("curl", "-sS", *flags, "http://127.0.0.1:#{port}/")
    end
    log_lines.join
  end

  def test_text
    assert_match(%r{ for 127\.0\.0\.1 over HTTP/2, TLSv1\.3\n\z}, line_over_tls(:text, "--http2"))
    older = line_over_tls(:text, "--http1.1", "--tls-max", "1.2")

    assert_match(%r{ for 127\.0\.0\.1 over HTTP/1\.1, TLSv1\.2\n\z}, older)
    assert_match(%r{ for 127\.0\.0\.1 over HTTP/2\n\z}, line_over_plain(:text, "--http2-prior-knowledge"))
    assert_match(%r{ for 127\.0\.0\.1 over HTTP/1\.0\n\z}, line_over_plain(:text, "--http1.0"))
    assert_match(/ for 127\.0\.0\.1\n\z/, line_over_plain(:text))
  end

  def test_json
    newest = JSON.parse(line_over_tls(:json, "--http2"))
    older = JSON.parse(line_over_tls(:json, "--http1.1", "--tls-max", "1.2"))
    plain = JSON.parse(line_over_plain(:json, "--http2-prior-knowledge"))

    assert_equal ["HTTP/2", "TLSv1.3"], newest.values_at("protocol", "tls")
    assert_equal ["HTTP/1.1", "TLSv1.2"], older.values_at("protocol", "tls")
    assert_equal "HTTP/2", plain["protocol"]
    refute_includes plain, "tls"
  end

  def test_apaches_format_has_no_field_for_tls
    assert_match(%r{\] "GET / HTTP/2" 200 5\n\z}, line_over_tls(:clf, "--http2"))
  end
end
