# frozen_string_literal: true

require "net/support/resolver_case"

# The files of the system: hosts, resolv.conf, nsswitch.conf.
class ResolverFilesTest < Minitest::Test
  include Heddle::TestHelpers::ResolverCase

  Configuration = Heddle::Net::Resolver::Configuration
  NameSources = Heddle::Net::Resolver::NameSources

  def test_the_hosts_file_goes_before_any_name_server
    server = name_server
    server.host("web.example", "192.0.2.1")
    File.write(@hosts, <<~TEXT)
      # a comment
      198.51.100.7   Web.Example alias.example  # another
      198.51.100.8\tweb.example
      2001:db8::5 six.example
      nonsense web.example
      198.51.100.9
    TEXT
    resolver = resolver_for(server)

    assert_equal %w[198.51.100.7 198.51.100.8], resolver.addresses("WEB.example")
    assert_equal ["198.51.100.7"], resolver.addresses("alias.example")
    assert_equal ["2001:db8::5"], resolver.addresses("six.example")
    assert_empty server.questions
  end

  def test_a_changed_hosts_file_is_read_again
    resolver = resolver_for(name_server)
    replace(@hosts, "198.51.100.1 box\n")

    assert_equal ["198.51.100.1"], resolver.addresses("box")
    replace(@hosts, "198.51.100.2 box\n")

    assert_equal ["198.51.100.2"], resolver.addresses("box")
    File.delete(@hosts)

    assert_equal [], resolver.addresses("box")
    File.write(@hosts, "198.51.100.3 box\n")

    assert_equal ["198.51.100.3"], resolver.addresses("box")
  end

  def test_an_unchanged_hosts_file_is_read_once
    reads = 0
    file = Heddle::Net::Resolver::WatchedFile.new(@hosts) { |text| [reads += 1, text] }
    3.times { file.value }

    assert_equal [1, "127.0.0.1 localhost\n"], file.value
  end

  def test_a_changed_resolv_conf_is_read_again_and_the_cache_forgotten
    path = File.join(@folder, "resolv.conf")
    File.write(path, "search one.example\noptions timeout:1 attempts:1\nnameserver 127.0.0.1\n")
    resolver = Heddle::Net::Resolver.new(hosts: @hosts, resolv_conf: path, nsswitch: nil)
    cache = resolver.instance_variable_get(:@cache)
    resolver.send(:current_configuration)
    cache.store("web.example", ["192.0.2.1"].freeze, 60)

    assert_equal ["192.0.2.1"], resolver.addresses("web.example.")
    replace(path, "search two.example\nnameserver 127.0.0.2\n")

    assert_equal ["two.example"], resolver.send(:current_configuration).search
    assert_nil cache.fetch("web.example")
  end

  def test_resolv_conf_is_read_as_libc_reads_it
    configuration = parse(<<~TEXT)
      # comment
      ; comment
      domain ignored.example
      search One.Example. two.example
      nameserver 192.0.2.53
      nameserver dns.example
      nameserver 2001:db8::53
      nameserver 192.0.2.54
      nameserver 192.0.2.55
      options ndots:2 timeout:3 attempts:4 rotate edns0 unknown:7 ndots:x
      options use-vc no-aaaa
    TEXT

    assert_equal %w[192.0.2.53 2001:db8::53 192.0.2.54], configuration.servers.map(&:ip_address)
    assert_equal [53], configuration.servers.map(&:ip_port).uniq
    assert_equal %w[one.example two.example], configuration.search
    assert_equal [2, 3, 4], [configuration.ndots, configuration.timeout, configuration.attempts]
    assert_predicate configuration, :rotate?
    assert_predicate configuration, :use_vc?
    assert_equal 1, configuration.types.size
    assert_predicate configuration, :frozen?
  end

  def test_without_a_resolv_conf_the_server_is_this_machine
    configuration = parse("")

    assert_equal ["127.0.0.1"], configuration.servers.map(&:ip_address)
    assert_equal [1, 5, 2], [configuration.ndots, configuration.timeout, configuration.attempts]
    assert_equal Socket.gethostname.split(".", 2).drop(1), configuration.search
  end

  def test_options_have_libcs_limits
    configuration = parse("options ndots:99 timeout:0 attempts:1000\n")

    assert_equal [15, 1, 5], [configuration.ndots, configuration.timeout, configuration.attempts]
  end

  def test_the_environment_goes_before_resolv_conf
    configuration = parse("search one.example\noptions ndots:2\n",
                          "LOCALDOMAIN" => "a.example b.example", "RES_OPTIONS" => "ndots:4 rotate")

    assert_equal %w[a.example b.example], configuration.search
    assert_equal 4, configuration.ndots
    assert_predicate configuration, :rotate?
  end

  def test_a_name_server_with_a_zone_is_understood
    loopback = Socket.getifaddrs.find { |interface| interface.addr&.ipv4_loopback? }.name

    assert_equal ["fe80::53%#{loopback}"], parse("nameserver fe80::53%#{loopback}\n").servers.map(&:ip_address)
  end

  def test_files_and_dns_are_looked_up_without_libc
    ["", "hosts: files dns\n", "passwd: ldap\nhosts:\tfiles dns # mdns\n"].each do |text|
      assert_equal %i[files dns], NameSources.parse(text).plan("web.example")
    end
    assert_equal %i[files], NameSources.parse("hosts: files\n").plan("web.example")
    assert_equal %i[dns files], NameSources.parse("hosts: dns files\n").plan("web.example")
  end

  def test_a_source_that_only_libc_knows_gets_the_names_it_may_know
    mdns = NameSources.parse("hosts: files mdns4_minimal [NOTFOUND=return] dns\n")

    assert_equal %i[files dns], mdns.plan("web.example")
    assert_equal %i[files system], mdns.plan("printer.local")

    fedora = NameSources.parse("hosts: files myhostname resolve [!UNAVAIL=return] dns\n")

    assert_equal %i[files system], fedora.plan("web.example")

    own = NameSources.parse("hosts: files dns myhostname\n")

    assert_equal %i[files dns], own.plan("web.example")
    assert_equal %i[files dns system], own.plan("_gateway")
    assert_equal %i[files dns system], own.plan(Socket.gethostname.downcase)
    assert_equal %i[system], NameSources.parse("hosts: files [NOTFOUND=return] dns\n").plan("web.example")
    assert_equal %i[files system], NameSources.parse("hosts: files ldap dns\n").plan("web.example")
  end

  def test_libc_is_asked_where_nsswitch_conf_says_so
    path = File.join(@folder, "nsswitch.conf")
    File.write(path, "hosts: files ldap\n")
    resolver = Heddle::Net::Resolver.new(hosts: @hosts, nsswitch: path)
    asked = []
    lookup = ->(name) { (asked << name) && [Addrinfo.tcp("192.0.2.44", 0), Addrinfo.tcp("192.0.2.44", 1)] }
    resolver.instance_variable_set(:@system, Heddle::Net::Resolver::SystemResolver.new(lookup))

    assert_equal ["192.0.2.44"], resolver.addresses("printer.example")
    assert_equal ["127.0.0.1"], resolver.addresses("localhost")
    assert_equal ["printer.example"], asked
  end

  private

  def parse(text, environment = {})
    Configuration.parse(text, "resolv.conf", environment)
  end
end
