# frozen_string_literal: true

require "test_helper"
require "heddle"
require "heddle/server"
require "open3"
require_relative "server/cluster/cluster_case"

# What changes Ruby's tables or reads C frames is off by default where its tests have not been run.
class PlatformTest < Minitest::Test
  include ClusterCase

  Platform = Heddle::Platform
  # Makes the program believe that it runs on another platform.
  ELSEWHERE = <<~RUBY
    require "heddle/platform"
    Heddle::Platform.singleton_class.prepend(Module.new { def untested = super(arch: "riscv64-linux") })
  RUBY

  def setup
    super
    write("elsewhere.rb", ELSEWHERE)
    write("config.ru", 'run { [200, {}, [Heddle.enabled.sort.join(",")]] }')
  end

  def elsewhere = { "RUBYOPT" => "-I#{File.expand_path("../lib", __dir__)} -r#{path("elsewhere.rb")}" }

  # Without the library of the tests.
  def program(code)
    output, status = Open3.capture2e(elsewhere, RbConfig.ruby, "-e", code)

    assert_predicate status, :success?, output
    output
  end

  def test_platforms_that_the_page_calls_run_are_tested_and_no_others
    assert_nil Platform.untested(arch: "x86_64-linux-gnu", version: "3.4.11")
    assert_nil Platform.untested(arch: "x86_64-linux", version: "3.3.8")
    assert_nil Platform.untested(arch: "x86_64-linux-musl", version: "3.3.8")
    assert_equal "not tested on aarch64-linux-gnu with Ruby 3.4",
                 Platform.untested(arch: "aarch64-linux-gnu", version: "3.4.11")
    assert_match(/Ruby 3.4/, Platform.untested(arch: "x86_64-linux-musl", version: "3.4.11"))
    %w[arm64-darwin24 x86_64-freebsd14 x64-mingw-ucrt].each { |arch| refute_nil Platform.untested(arch:) }
  end

  def test_tested_versions_of_ruby_are_those_of_the_page
    rows = File.read(File.expand_path("../docs/platforms.md", __dir__)).lines.grep(/^\| Linux, .*\| run \|/)
    on_page = rows.to_h do |row|
      arch = "#{row[/x86-64|ARM64/].tr("-", "_").sub("ARM64", "aarch64")}-linux#{"-musl" if row.include?("musl")}"
      [arch, row.split("|")[1].scan(/\b(\d\.\d)\.\d+/).flatten.grep_v(/\A1\./)]
    end

    assert_equal on_page, Platform.const_get(:TESTED)
  end

  def test_server_elsewhere_starts_without_tables_and_frames_and_says_so
    serve("--control", "unix:control.sock", workers: 1, environment: { **elsewhere, "RACK_ENV" => "production" })

    assert_equal "handoff,stall_report", served.get("/").body
    wait_until { served.output.include?("Ctrl-C stops it") }
    assert_match(/^Protection: stall_report.*; off: .*offload of core functions.*preempt.*guard pages/, served.output)
    assert_match(/preempt \(not tested on riscv64-linux with Ruby \d\.\d: heddle protect on switches/, served.output)
    Heddle::CLI.run(["protect", "on", "--control", "unix:#{path("control.sock")}"], output: StringIO.new)

    wait_until { served.get("/").body == "handoff,offload,preempt,stall_report" }
  end

  def test_protections_that_the_option_names_are_on_elsewhere
    serve("--protect", "offload,preempt", workers: 0, environment: { **elsewhere, "RACK_ENV" => "production" })

    assert_equal "offload,preempt", served.get("/").body
  end

  def test_doctor_elsewhere_says_what_is_off_and_why
    output, = Open3.capture2e({ **elsewhere, "RACK_ENV" => "production" }, *ServedProcess::HEDDLE, "doctor",
                              chdir: @folder)

    assert_match(/off: .*preempt.* \(not tested on riscv64-linux with Ruby \d\.\d: heddle protect on/, output)
    assert_match(/guard pages \(not tested on riscv64-linux/, output)
    assert_match(/on: stall_report/, output)
  end

  def test_program_elsewhere_has_guard_pages_when_its_user_wants_them
    code = 'require "heddle"; Heddle.run { puts Heddle::Scheduler.guard_pages }'

    assert_match(/\Anot tested on riscv64-linux .*: HEDDLE_GUARD_PAGES=1/, program(code))
    refute_match(/not tested on/, program("ENV['HEDDLE_GUARD_PAGES'] = '1'; #{code}"))
  end

  def test_newer_ruby_names_both_versions_of_a_ruby_that_was_not_tried
    notice = Heddle::Platform.newer_ruby("99.2.1")

    assert_match(/\ARuby 99\.2 is newer than \d\.\d, the newest version that Heddle was tested with\z/, notice)
  end

  def test_newer_ruby_is_nil_for_tested_and_older_rubies
    %w[3.3.8 3.10.0 4.0.5].each { |version| assert_nil Heddle::Platform.newer_ruby(version) }
  end
end
