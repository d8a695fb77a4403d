# frozen_string_literal: true

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
    %w[help --help -h].each { |word| assert_match(/serve .*\n.*demo .*\n.*version /, run_cli(word)[1]) }
    assert_equal [0, "heddle #{Heddle::VERSION}\n", ""], run_cli("version")
    assert_equal run_cli("version"), run_cli("--version")
    assert_equal run_cli("help"), run_cli
  end

  def test_the_help_of_a_server_lists_every_flag
    require "heddle/server"
    [%w[help serve], %w[serve --help], %w[demo -h]].each do |arguments|
      status, output, = run_cli(*arguments)

      assert_equal 0, status
      Heddle::Server::Options::ALL.each { |option| assert_includes output, option.flag.delete_prefix("--") }
      assert_operator output.lines.map(&:size).max, :<=, 110
    end
  end

  def test_an_unknown_command_gives_the_nearest
    assert_misused(/there is no command srve. Did you mean serve\?/, "srve")
    assert_misused(/there is no command dmeo. Did you mean demo\?/, "help", "dmeo")
    assert_misused(/there is no command xyzzy. `heddle help` lists them/, "xyzzy")
  end

  def test_an_unknown_flag_gives_the_nearest
    assert_misused(/there is no flag --prot. Did you mean --port\?/, "serve", "--prot", "3000")
    assert_misused(/there is no flag --prot=3. Did you mean --port\?/, "demo", "--prot=3")
    assert_misused(/there is no flag --hepl without a command. Did you mean --help\?/, "--hepl")
    assert_misused(/heddle serve -p/, "-p", "3000")
    assert_misused(/there is no flag --po/, "serve", "--po", "3")
  end

  def test_values_that_are_missing_too_many_or_wrong
    assert_misused(/the flag -p needs a value/, "serve", "-p")
    # Ruby 3.3's own option parser does not know the flag at all when it has a value.
    assert_misused(/the flag --no-access-log takes no value|there is no flag --no-access-log=1/, "serve",
                   "--no-access-log=1")
    assert_misused(/--port must be a whole number, but is "x"/, "serve", "-p", "x")
    assert_misused(/serve takes one file, but got a.ru, b.ru/, "serve", "a.ru", "b.ru")
    assert_misused(/demo takes no file, but got a.ru/, "demo", "a.ru")
    assert_misused(/--bind must be host:port/, "serve", "-b", "a:b")
    assert_misused(/--workers can only be 1 for now/, "serve", "-w", "4")
  end
end
