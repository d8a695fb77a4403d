# frozen_string_literal: true

require "net/support/resolver_case"

# Addresses come in the order in which to try them (RFC 6724).
class ResolverOrderTest < Minitest::Test
  AddressOrder = Heddle::Net::Resolver::AddressOrder

  def test_ipv6_goes_before_ipv4_and_each_keeps_the_servers_order
    assert_equal %w[2001:db8::2 2001:db8::1 192.0.2.2 192.0.2.1],
                 sort(%w[192.0.2.2 2001:db8::2 192.0.2.1 2001:db8::1])
  end

  def test_a_family_without_a_route_goes_last
    order = AddressOrder.new(->(address) { !address.include?(":") })

    assert_equal %w[192.0.2.1 2001:db8::1], order.sort(%w[2001:db8::1 192.0.2.1])
  end

  def test_private_and_tunnel_addresses_go_after_ipv4
    %w[fd00::1 fc12::1 2002:c000:201::1 2001:0:1::1 fec0::1 3ffe::1].each do |address|
      assert_equal ["192.0.2.1", address], sort([address, "192.0.2.1"]), address
    end
    assert_equal %w[::1 127.0.0.1], sort(%w[127.0.0.1 ::1])
    assert_equal %w[fe80::1%lo 127.0.0.1], sort(%w[127.0.0.1 fe80::1%lo])
  end

  def test_the_kernel_says_what_has_a_route
    assert_equal ["127.0.0.1"], AddressOrder.new.sort(["127.0.0.1"])
    routed = Socket.ip_address_list.any?(&:ipv6_loopback?)
    expected = routed ? %w[::1 127.0.0.1] : %w[127.0.0.1 ::1]

    assert_equal expected, AddressOrder.new.sort(%w[127.0.0.1 ::1])
  end

  private

  def sort(addresses)
    AddressOrder.new(->(_) { true }).sort(addresses)
  end
end
