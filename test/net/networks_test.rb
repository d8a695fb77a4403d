# frozen_string_literal: true

require "test_helper"
require "heddle/net/networks"

class NetworksTest < Minitest::Test
  def networks(*names) = Heddle::Net::Networks.new(names)

  def test_networks_and_addresses_of_both_families
    set = networks("192.0.2.0/25", "198.51.100.7", "2001:db8:8000::/33")

    %w[192.0.2.0 192.0.2.127 198.51.100.7 2001:db8:8000:: 2001:db8:ffff::1].each { |one| assert_includes set, one }
    %w[192.0.2.128 192.0.3.0 198.51.100.6 2001:db8:7fff:: ::1 127.0.0.1].each { |one| refute_includes set, one }
  end

  def test_an_address_of_ipv4_is_the_same_on_a_socket_for_both
    assert_includes networks("10.0.0.0/8"), "::ffff:10.1.2.3"
    refute_includes networks("10.0.0.0/8"), "::ffff:11.1.2.3"
    refute_includes networks("0.0.0.0/0"), "::1"
  end

  def test_addresses_in_bytes
    set = networks("10.0.0.0/8", "2001:db8::/32")

    assert(%w[10.1.2.3 2001:db8::1].all? { |one| set.cover?(IPAddr.new(one).hton) })
    assert(%w[11.1.2.3 2001:db9::1].none? { |one| set.cover?(IPAddr.new(one).hton) })
  end

  def test_words
    set = networks("loopback", "private", "unix")

    %w[127.0.0.1 ::1 10.0.0.1 172.31.0.1 192.168.1.1 fd00::1 169.254.1.1 fe80::1 unix].each do |one|
      assert_includes set, one
    end
    %w[172.32.0.1 8.8.8.8 2001:db8::1].each { |one| refute_includes set, one }
    assert_includes networks("all"), "8.8.8.8"
    assert_includes networks("all"), "unix"
    refute_includes networks("loopback"), "unix"
    refute_includes networks("none"), "127.0.0.1"
    refute_includes networks, "127.0.0.1"
  end

  def test_an_invalid_network_raises_with_its_text
    ["10.0.0.0/33", "example.com", "", "10.0.0"].each do |wrong|
      error = assert_raises(ArgumentError) { networks("loopback", wrong) }

      assert_match(/#{Regexp.escape(wrong.inspect)} is not a network: write/, error.message)
    end
  end

  def test_networks_are_frozen_and_shareable
    assert_predicate networks("loopback"), :frozen?
    assert Ractor.shareable?(networks("private"))
    assert_raises(FrozenError) { networks("loopback").send(:set_up, [], true) }
  end
end
