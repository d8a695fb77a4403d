# frozen_string_literal: true

require "test_helper"
require "server/web_socket_helpers"
require "json"

# What the access log says about WebSockets.
class WebSocketLogTest < Minitest::Test
  include WebSocketHelpers

  def lines_of(**options)
    handler = Echo.new
    serving(upgrading(handler), lint: false, **options) do
      client = dial("/room?a=b")
      client.text("grüße")
      client.message
      client.close(4001)
      client.closing
      nil until handler.calls.pop(timeout: PATIENCE).first == :close
    end
    output.string.lines.select { |line| line.include?("/room") }
  end

  def test_an_upgrade_and_the_end_of_its_socket_are_a_line_each
    upgrade, ending = lines_of

    assert_match(%r{\A[\d:]{8} 101 GET /room\?a=b 0 bytes in [\d.]+ m?s for 127\.0\.0\.1\n\z}, upgrade)
    assert_match(%r{\A[\d:]{8} 4001 WebSocket /room\?a=b received 1 message \(7 bytes\), sent 1 message \(7 bytes\) },
                 ending)
    assert_match(/ in \d+\.\d\d s for 127\.0\.0\.1\n\z/, ending)
  end

  def test_json_has_an_event_of_its_own_with_the_request_id
    lines = lines_of(log_format: :json, request_id: true)
    upgrade, ending = lines.map { |line| JSON.parse(line, symbolize_names: true) }

    assert_equal [101, nil], upgrade.values_at(:status, :remark)
    expected = { event: "websocket", target: "/room?a=b", remote: "127.0.0.1", code: 4001, received: 1,
                 received_bytes: 7, sent: 1, sent_bytes: 7, request_id: upgrade[:request_id] }

    assert_equal expected, ending.slice(*expected.keys)
    assert_operator ending[:duration], :>=, 0
    assert_match(/\h{8}-/, ending[:request_id])
  end

  def test_a_client_behind_a_trusted_proxy_is_named
    handler = Echo.new
    serving(upgrading(handler), lint: false, log_format: :json) do
      client = dial("/room", x_forwarded_for: "203.0.113.7")
      client.io.close
      nil until handler.calls.pop(timeout: PATIENCE).first == :close
    end
    ending = JSON.parse(output.string.lines.grep(/"websocket"/).first)

    assert_equal ["203.0.113.7", "127.0.0.1", 1006], ending.values_at("remote", "proxy", "code")
  end

  def test_apaches_formats_log_the_request_alone
    assert_equal 1, lines_of(log_format: :clf).size
  end

  def test_without_an_access_log_nothing_is_said
    assert_empty lines_of(access_log: false)
  end
end
