# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

# A server that listens for other machines and trusts private networks by default logs a notice.
class ForwardingNoticeTest < Minitest::Test
  include ServerHelpers

  NOTICE = /clients in private networks that connect to (\S+) can forge their address and scheme with X-Forwarded-\*/

  def said_with(**options)
    serving(text, lint: false, **options) { nil }
    output.string[NOTICE, 1]
  end

  def test_the_notice_is_logged_for_an_address_reachable_from_other_machines
    assert_match(/\A0\.0\.0\.0:\d+\z/, said_with(bind: ["0.0.0.0:0"]))
  end

  def test_the_notice_is_not_logged_for_local_addresses_or_configured_proxies
    assert_nil said_with
    assert_nil said_with(bind: ["0.0.0.0:0"], trusted_proxies: %w[loopback])
    assert_nil said_with(bind: ["0.0.0.0:0"], trusted_proxies: %w[192.0.2.0/24])
  end
end
