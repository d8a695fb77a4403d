# frozen_string_literal: true

# test: smoke

require "test_helper"
require "tmpdir"
require "heddle/net/tls/client_context"
require "support/certificates"

# Clients with the same options share a context: which one, and for how long.
class ClientContextTest < Minitest::Test
  Context = Heddle::Net::TLS::ClientContext

  def setup
    @folder = Dir.mktmpdir
    @cert, @key = TestCertificates.write(@folder, "client", TestCertificates.make("client"))
  end

  def teardown = FileUtils.rm_rf(@folder)

  def options(**) = { ca: @cert, cert: @cert, key: @key, ** }

  def test_equal_options_share_a_context_and_its_sessions
    assert_same Context.for(options), Context.for(options)
    assert_same Context.sessions(options), Context.sessions(options)
  end

  def test_a_certificate_that_was_replaced_is_read_again
    before = Context.for(options)
    sessions = Context.sessions(options)
    TestCertificates.write(@folder, "next", TestCertificates.make("client")).zip([@cert, @key]) do |made, path|
      File.rename(made, path)
    end

    refute_same before, Context.for(options)
    refute_same sessions, Context.sessions(options)
    assert_same Context.for(options), Context.for(options)
  end

  def test_a_file_that_is_missing_is_an_error_of_the_context
    File.unlink(@key)

    assert_raises(Errno::ENOENT) { Context.for(options) }
  end

  def test_the_options_that_were_not_asked_for_the_longest_are_forgotten
    first = Context.sessions(options)
    second = Context.sessions(options(minimum: "1.3"))
    300.times do |number|
      Context.sessions(options(name: number))

      assert_same first, Context.sessions(options)
    end

    refute_same second, Context.sessions(options(minimum: "1.3"))
    assert_operator Context.instance_variable_get(:@sessions).size, :<=, 256
  end
end
