# frozen_string_literal: true

require "test_helper"
require "heddle/cli"
require "heddle/server"
require "fileutils"
require "stringio"
require "tmpdir"

# `heddle init`: the file that it writes is one that the server reads.
class InitTest < Minitest::Test
  def setup
    @folder = File.realpath(Dir.mktmpdir)
    @before = Dir.pwd
    Dir.chdir(@folder)
  end

  def teardown
    Dir.chdir(@before)
    FileUtils.remove_entry(@folder)
  end

  def init(*arguments)
    output = StringIO.new
    errors = StringIO.new
    [Heddle::CLI.run(["init", *arguments], output:, errors:), output.string, errors.string]
  end

  def configuration(environment = {}) = Heddle::Server::Configuration.load(environment:, folder: @folder)

  def written = File.read("config/heddle.rb")

  def test_a_file_to_begin_with_changes_nothing_and_every_line_of_it_can_be_used
    status, output, = init

    assert_equal 0, status
    assert_match(%r{\Aconfig/heddle\.rb written\.$}, output)
    assert_equal "config/heddle.rb", configuration.file
    Heddle::Options::ALL.each { |option| assert_equal "default", configuration.source(option.name).to_s }
    lines = written.lines.grep(/\A# (?:port|stop_timeout|access_log|bind|body_limit) /)

    assert_equal 5, lines.size
    File.write("config/heddle.rb", lines.map { |line| line.delete_prefix("# ") }.join)

    assert_equal 3_000, configuration.port
  end

  def test_a_file_that_is_there_is_only_overwritten_by_force
    init
    File.write("config/heddle.rb", "port 1")
    status, _, errors = init

    assert_equal [2, "heddle: config/heddle.rb exists. --force overwrites it.\n", "port 1"],
                 [status, errors, written]
    assert_equal 0, init("--force").first
    refute_equal "port 1", written
  end

  def test_a_value_that_a_flag_does_not_take_writes_nothing
    before = Dir.children(".")
    %w[--force=3 --keep-puma=no --force= --help=x].each do |word|
      status, _, errors = init(word)

      assert_equal [2, "heddle: needless argument: #{word}. `heddle help init` lists the flags.\n"], [status, errors]
    end

    assert_equal before, Dir.children(".")
    assert_equal 0, init("--", "--force=3").first
    assert_path_exists "--force=3"
  end

  def test_mistakes
    { ["--form", "x"] => /invalid option: --form\. Did you mean --from\? `heddle help init`/,
      ["--from"] => /missing argument: --from/,
      ["--version"] => /invalid option: --version/, ["--from=gone.rb"] => /the file gone\.rb does not exist/,
      %w[a b] => /init writes one file/, ["--from", "gone.rb"] => /the file gone\.rb does not exist/ }
      .each do |arguments, message|
        status, _, errors = init(*arguments)

        assert_equal [2, 1], [status, errors.lines.size]
        assert_match message, errors
      end
    File.write("puma.rb", "threads 1\n\nbind [}\n")

    assert_match(/\Aheddle: puma\.rb:3: syntax error: /, init("--from", "puma.rb").last)
  end
end
