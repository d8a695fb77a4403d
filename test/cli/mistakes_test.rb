# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "socket"
require "support/forbidden_io_uring"
require "support/served_process"
require "tmpdir"

# What the command prints after a user's mistake: one message and no backtrace of Heddle's. Its exit status is not zero.
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

  def test_an_argument_that_is_not_utf8
    [["\xFF"], ["serve", "caf\xE9.ru"], ["status", "--\xFF"], ["help", "\xFF"]].each do |arguments|
      assert_equal [2, "", "heddle: the argument #{arguments.last.inspect} is not UTF-8\n"], heddle(*arguments)
    end
  end

  def test_a_folder_that_was_deleted
    %w[serve status doctor].each do |command|
      folder = Dir.mktmpdir
      output, errors, status = Open3.capture3("sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *HEDDLE, command,
                                              chdir: folder)

      assert_equal [1, "", "heddle: the current folder no longer exists: change to another folder\n"],
                   [status.exitstatus, output, errors.lines.grep_v(/\AIgnoring /).join]
    end
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
    assert_fails(/config\.ru can't be loaded because of a syntax error:.*config\.ru:2/m, "serve", "-p", "0",
                 config: "run do\n [}\nend")
  end

  def test_an_error_in_the_file
    assert_fails(/config\.ru can't be loaded:\n  RuntimeError: no database\n    from config\.ru:1/,
                 "config.ru", "-p", "0",
                 config: "raise 'no database'")
  end

  def test_a_path_that_is_not_a_socket
    assert_fails(%r{the folder /nonexistent does not exist}, "serve", "-b", "unix:/nonexistent/x")
  end

  def test_a_selector_that_does_not_exist
    [[], %w[--workers 2]].each do |workers|
      assert_misused(/\Aheddle: selector \(--selector\) is :poll, but this build .* supports .* Leave the option/,
                     *ServedProcess::HEDDLE, "serve", "-p", "0", "--selector", "poll", *workers)
    end
  end

  def test_a_selector_that_the_machine_forbids
    launcher = ForbiddenIOUring.launcher or skip ForbiddenIOUring::NEEDS
    [[], %w[--workers 2]].each do |workers|
      assert_misused(/\Aheddle: selector \(HEDDLE_SELECTOR\) is :io_uring, which does not work .* Leave the option/,
                     *launcher, *ServedProcess::HEDDLE, "serve", "-p", "0", *workers, "HEDDLE_SELECTOR" => "io_uring")
    end
  end

  def test_the_line_about_another_selector_comes_once_for_all_processes
    launcher = ForbiddenIOUring.launcher or skip ForbiddenIOUring::NEEDS
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), "run ->(env) { [200, {}, []] }")
      served = ServedProcess.new([*launcher, *ServedProcess::HEDDLE, "serve", "-p", "0", "--workers", "2"],
                                 folder:, environment: { "HEDDLE_SELECTOR" => nil })

      assert_equal "200", served.get("/").code
      served.stop

      assert_equal 1, served.output.scan("io_uring is forbidden").size, served.output
    end
  end

  def assert_misused(message, *command, **environment)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), "run ->(env) { [200, {}, []] }")
      output, errors, status = Open3.capture3(environment, *command, chdir: folder)
      errors = errors.lines.grep_v(/\AIgnoring /).join

      assert_equal [2, ""], [status.exitstatus, output], errors
      assert_match message, errors
      assert_equal 1, errors.lines.size, errors
    end
  end
end
