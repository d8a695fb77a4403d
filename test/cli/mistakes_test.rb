# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "socket"
require "tmpdir"

# What a person sees who makes a mistake: one message, no backtrace of Heddle's, an exit status that is not zero.
class MistakesTest < Minitest::Test
  HEDDLE = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/heddle"].freeze

  def heddle(*arguments, config: nil)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), config) if config
      output, errors, status = Open3.capture3(*HEDDLE, *arguments, chdir: folder)
      return [status.exitstatus, output, errors.lines.grep_v(/\AIgnoring /).join]
    end
  end

  def assert_fails(message, *arguments, config: "run ->(env) { [200, {}, []] }")
    status, output, errors = heddle(*arguments, config:)

    assert_equal [1, ""], [status, output], errors
    assert_operator errors, :start_with?, "heddle: "
    assert_match message, errors
    refute_match(%r{lib/heddle|exe/heddle|rack/builder}, errors)
  end

  def test_a_port_that_is_taken
    taken = TCPServer.new("127.0.0.1", 0)
    port = taken.local_address.ip_port.to_s

    assert_fails(/can't listen on 127\.0\.0\.1:#{port}: the port is taken by another program/, "serve", "-b",
                 "127.0.0.1", "-p", port)
    assert_fails(/taken by another program/, "demo", "-p", port)
  ensure
    taken.close
  end

  def test_a_missing_file
    assert_fails(/there is no file config\.ru in /, "serve", "-p", "0", config: nil)
    assert_fails(/there is no file other\.ru in /, "other.ru", "-p", "0")
  end

  def test_a_syntax_error
    assert_fails(/config\.ru can't be loaded, it has a syntax error:.*config\.ru:2/m, "serve", "-p", "0",
                 config: "run do\n [}\nend")
  end

  def test_an_error_in_the_file
    assert_fails(/config\.ru can't be loaded:\n  RuntimeError: no database\n    from config\.ru:1/,
                 "config.ru", "-p", "0",
                 config: "raise 'no database'")
  end

  def test_a_path_that_is_no_socket
    assert_fails(%r{the folder /nonexistent does not exist}, "serve", "-b", "unix:/nonexistent/x")
  end

  def test_a_selector_that_does_not_exist
    assert_fails(/--selector names :poll, which is not built in here/, "serve", "-p", "0", "--selector", "poll")
  end
end
