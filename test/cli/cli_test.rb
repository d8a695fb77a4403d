# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle/cli"
require "stringio"

class CLITest < Minitest::Test
  def run_cli(*arguments)
    output = StringIO.new
    errors = StringIO.new
    [Heddle::CLI.run(arguments, output:, errors:), output.string, errors.string]
  end

  def assert_misused(message, *arguments)
    status, output, errors = run_cli(*arguments)

    assert_equal [2, ""], [status, output]
    assert_match message, errors
    assert_equal 1, errors.lines.size
  end

  def test_help_and_version
    commands = /^  serve .*\n  demo .*\n  check .*\n  init .*\n(?:  \w+ .*\n)+  version /
    %w[help --help -h].each { |word| assert_match commands, run_cli(word)[1] }
    assert_equal [0, "heddle #{Heddle::VERSION}\n", ""], run_cli("version")
    assert_equal run_cli("version"), run_cli("--version")
    assert_equal run_cli("help"), run_cli
  end

  def test_the_help_of_a_server_lists_every_flag
    require "heddle/server"
    [%w[help serve], %w[serve --help]].each do |arguments|
      all = run_cli(*arguments, "--all")
      status, output, = run_cli(*arguments)

      assert_equal [0, 0], [status, all.first]
      Heddle::Options::ALL.each do |option|
        name = /--(?:\[no-\])?#{option.flag.delete_prefix("--")}\b/

        assert_match name, all[1]
        assert_equal !option.advanced, output.match?(name), option.name
      end
      assert_operator all[1].lines.map(&:size).max, :<=, 110
    end
  end

  def test_the_help_of_the_demo_names_its_own_defaults
    assert_match(/--workers 0.*--slow-request 0.*heddle help serve/m, run_cli("demo", "-h")[1])
    assert_equal run_cli("help", "demo"), run_cli("demo", "--help")
  end

  def test_the_help_of_an_option_tells_what_it_is_called_everywhere
    ["stop_timeout", "--stop-timeout", "stop-timeout"].each do |name|
      status, output, = run_cli("help", name)

      assert_equal 0, status
      assert_match(/\Astop_timeout: maximum time for running requests .*\. Raise it, and .* when /, output)
      ["25 s", "--stop-timeout SECONDS", "HEDDLE_STOP_TIMEOUT", "stop_timeout 20", "from 0 to 86400"]
        .each { |text| assert_includes output, text }
    end
    assert_misused(/there is no command or option stop_timout. Did you mean stop_timeout\?/, "help", "stop_timout")
  end

  def test_the_help_of_an_option_names_pages_by_their_paths
    require "heddle/server"

    assert_match(%r{See\s+docs/modes\.md\.}, run_cli("help", "mode")[1])
    Heddle::Options::ALL.each { |option| refute_match(/\]\(/, run_cli("help", option.name.to_s)[1], option.name) }
  end

  def test_an_unknown_command_gives_the_nearest
    assert_misused(/there is no command srve. Did you mean serve\?/, "srve")
    assert_misused(/there is no command or option dmeo. Did you mean demo\?/, "help", "dmeo")
    assert_misused(/there is no command xyzzy. `heddle help` lists the commands/, "xyzzy")
  end

  def test_an_unknown_flag_gives_the_nearest
    assert_misused(/invalid option: --prot. Did you mean --port\?/, "serve", "--prot", "3000")
    assert_misused(/invalid option: --prot=3. Did you mean --port\?/, "demo", "--prot=3")
    assert_misused(/there is no flag --hepl without a command. Did you mean --help\?/, "--hepl")
    assert_misused(/invalid option: --po/, "serve", "--po", "3")
  end

  def test_flags_of_every_kind_are_read
    flags = Heddle::CLI::Flags.new(%w[-p1 --bind a -b b:2 --no-access-log --underscore-headers x.ru
                                      --body-limit=1k -- -y])
    expected = { port: "1", bind: %w[a b:2], access_log: false, underscore_headers: true, body_limit: "1k" }

    assert_equal expected, flags.values
    assert_equal %w[x.ru -y], flags.rest
    refute_predicate flags, :help?
  end

  def test_values_that_are_missing_too_many_or_wrong
    assert_misused(/missing argument: -p/, "serve", "-p")
    assert_misused(/--port must be a whole number, but is "--no-access-log"/, "serve", "--port", "--no-access-log")
    assert_misused(/invalid option: -x/, "serve", "-x")
    assert_misused(/needless argument: --no-access-log=1/, "serve",
                   "--no-access-log=1")
    assert_misused(/--port must be a whole number, but is "x"/, "serve", "-p", "x")
    assert_misused(/serve takes one file, but got a.ru, b.ru/, "serve", "a.ru", "b.ru")
    assert_misused(/demo takes no file, but got a.ru/, "demo", "a.ru")
    assert_misused(/--bind must be host:port/, "serve", "-b", "a:b")
    assert_misused(/--reserve-workers must be from 0 to 8, but is 9/, "serve", "--reserve-workers", "9")
  end

  def test_a_closed_output_is_reported_in_one_line
    errors = StringIO.new
    status = Heddle::CLI.run(["help"], output: StringIO.new.tap(&:close), errors:)

    assert_equal [1, "heddle: standard output is closed, so nothing can be printed\n"], [status, errors.string]
    assert_equal 1, Heddle::CLI.run(["help"], output: StringIO.new.tap(&:close), errors: StringIO.new.tap(&:close))
  end

  def test_a_command_ends_silently_when_its_reader_closes_the_pipe
    reader, output = IO.pipe
    output.sync = true
    reader.close
    errors = StringIO.new

    assert_equal [1, ""], [Heddle::CLI.run(["help"], output:, errors:), errors.string]
  ensure
    output.close
  end

  if File.chardev?("/dev/full")
    def test_a_full_disk_is_reported_and_fails_the_command
      [true, false].each do |sync|
        output = File.open("/dev/full", "w")
        output.sync = sync
        errors = StringIO.new

        assert_equal 1, Heddle::CLI.run(["help"], output:, errors:)
        assert_match(/\Aheddle: standard output is incomplete: No space left on device.*\n\z/, errors.string)
      ensure
        close_unwritten(output)
      end
    end
  end

  private

  # Closing writes what is still in Ruby's buffer.
  def close_unwritten(output)
    output.close
  rescue Errno::ENOSPC
    nil
  end
end
