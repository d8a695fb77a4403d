# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# Session tickets where OpenSSL has no random bytes to give: a ticket under a key that everybody knows protects nothing.
class TicketKeysTest < Minitest::Test
  # In a process of its own, which has made no keys yet. OpenSSL asks a replaceable table of functions for random bytes
  # (RAND_set_rand_method(3)); here they fail. The first 16 bytes of a ticket are the name of its key.
  PROGRAM = <<~'RUBY'
    require "fiddle"
    require "heddle/net/tls"
    require "support/certificates"

    pointer, int = Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT
    libcrypto = Fiddle.dlopen(File.read("/proc/self/maps")[%r{/\S+/libcrypto\S*}])
    set_method = Fiddle::Function.new(libcrypto["RAND_set_rand_method"], [pointer], int)
    none = Fiddle::Closure::BlockCaller.new(int, [pointer, int]) { 0 }
    ready = Fiddle::Closure::BlockCaller.new(int, []) { 1 }
    # seed, bytes, cleanup, add, pseudorand, status
    failing = Fiddle::Pointer[[0, none.to_i, 0, 0, none.to_i, ready.to_i].pack("J*")]

    keys = Heddle::Net::TLS::TicketKeys
    server = OpenSSL::SSL::SSLContext.new
    certificate, key = TestCertificates.make("localhost")
    server.add_certificate(certificate, key)
    server.max_version = OpenSSL::SSL::TLS1_2_VERSION
    server.setup
    Heddle::Native.load_tls($LOADED_FEATURES.grep(%r{/openssl\.so\z}).last)

    set_method.call(failing)
    begin
      keys.use(server)
    rescue SystemCallError => e
      puts e.class
    end
    set_method.call(nil)
    puts keys.use(server)

    ours, theirs = UNIXSocket.pair
    Thread.new { OpenSSL::SSL::SSLSocket.new(ours, server).accept }
    client = OpenSSL::SSL::SSLSocket.new(theirs, OpenSSL::SSL::SSLContext.new).connect
    puts client.session.to_text[/TLS session ticket:\n\s+0000 - (.*?)   /, 1].delete(" -")
  RUBY

  def test_no_ticket_is_sealed_with_zeros_after_a_key_could_not_be_made
    paths = $LOAD_PATH.flat_map { |path| ["-I", path] }
    output, errors, = Open3.capture3(RbConfig.ruby, *paths, "-e", PROGRAM)

    assert_match(/\AErrno::EIO\ntrue\n\h{32}\n\z/, output, errors)
    refute_equal "0" * 32, output.lines.last.chomp
  end
end
