# frozen_string_literal: true

require "test_helper"
require "heddle/cli"
require "json"
require "open3"
require "support/served_process"
require "tmpdir"

class DoctorTest < Minitest::Test
  Libraries = Heddle::CLI::Doctor::Libraries

  def setup
    @folder = Dir.mktmpdir
  end

  def teardown
    FileUtils.remove_entry(@folder)
  end

  # A gem as if it were loaded.
  def spec(name, version, source = nil)
    lib = File.join(@folder, name)
    Dir.mkdir(lib)
    File.write(File.join(lib, "#{name}.rb"), source) if source
    Struct.new(:name, :version, :full_require_paths).new(name, Gem::Version.new(version), [lib])
  end

  def found(*specs) = Libraries.new(specs).findings

  # @return [Array(String, Process::Status)]
  def doctor(*arguments)
    output, _, status = Open3.capture3(*ServedProcess::HEDDLE, "doctor", *arguments, chdir: @folder)
    [output, status]
  end

  def test_a_gem_that_mixes_up_requests_is_named_with_what_to_do
    finding, = found(spec("sequel", "5.31.0"))

    assert_equal [:problem, "sequel 5.31.0"], [finding.level, finding.subject]
    assert_match(/all requests of a thread share one connection/, finding.text)
    assert_match(/update Sequel to 5\.32/, finding.advice)
  end

  def test_configuration_hints_for_tested_gems_are_notes
    ok, note = found(spec("sequel", "5.110.0"))

    assert_equal [:ok, :note, "sequel 5.110.0"], [ok.level, note.level, note.subject]
    assert_match(/\ASequel\.extension :fiber_concurrency before the first query/, note.advice)
    assert_equal [:ok], found(spec("redis-client", "0.31.0")).map(&:level), "nothing is to be configured"
  end

  def deployment = Heddle::CLI::Doctor::Deployment.new(folder: @folder).findings

  def test_the_file_that_starts_another_server_is_named
    File.write(File.join(@folder, "Dockerfile"), "# puma\nFROM ruby\nCMD [\"bundle\", \"exec\", \"puma\", \"-p1\"]\n")
    File.write(File.join(@folder, "Procfile"), "web: bin/rails server\n")
    puma, rails, = deployment

    assert_equal [:warning, "Dockerfile:3", "starts Puma"], [puma.level, puma.subject, puma.text]
    assert_equal [:note, "Procfile:1"], [rails.level, rails.subject]
    File.write(File.join(@folder, "Dockerfile"), "CMD [\"./bin/rails\", \"server\"]\n")
    File.write(File.join(@folder, "Procfile"), "web: bundle exec heddle serve # config/puma.rb is gone\n")

    assert_equal %w[Dockerfile:1], deployment.map(&:subject)
    File.write(File.join(@folder, "Procfile"), "web: bundle exec puma # later: heddle serve\n")

    assert_equal %w[Dockerfile:1 Procfile:1], deployment.map(&:subject)
  end

  def test_the_entrypoint_that_heddle_has_changed_starts_no_other_server
    Dir.mkdir(File.join(@folder, "bin"))
    entrypoint = File.join(@folder, "bin/docker-entrypoint")
    File.write(entrypoint, %(if [ "${@: -2:1}" == "./bin/rails" ] && [ "${@: -1:1}" == "server" ]; then\nfi\n))
    output, status = Open3.capture2e(*ServedProcess::HEDDLE, "init", "--apply", chdir: @folder)

    assert_predicate status, :success?, output
    assert_includes File.read(entrypoint), "/rails server"
    assert_empty deployment
    File.write(entrypoint, "if [ $A ]; then exec heddle serve; else exec bundle exec puma; fi\n", mode: "a")

    assert_equal [["bin/docker-entrypoint:4", "starts Puma"]], deployment.map { |one| [one.subject, one.text] }
  end

  def test_the_entrypoint_that_prepares_the_database_for_rails_server_alone_is_named
    Dir.mkdir(File.join(@folder, "bin"))
    File.write(File.join(@folder, "bin/docker-entrypoint"), %(if [ "${*}" == "./bin/rails server" ]; then\nfi\n))

    assert_equal [[:warning, "bin/docker-entrypoint:1", "the condition holds only for `rails server`"]],
                 deployment.map { |one| [one.level, one.subject, one.text] }
  end

  def test_code_that_asks_which_server_runs_is_named
    FileUtils.mkdir_p(File.join(@folder, "config/initializers"))
    FileUtils.mkdir_p(File.join(@folder, "config/puma"))
    { "config/initializers/a.rb" => "# Rails::Server\nClock.start if defined?(Rails::Server)\n",
      "config/initializers/b.rb" => "Clock.start if ::Rails.const_defined?(:Server)\n",
      "config/initializers/c.rb" => "Gauge.set(Puma.stats_hash)\nx = PumaStation\ny = Prometheus::Puma\n",
      "config/initializers/d.rb" => "x = PumaStation\ny = Prometheus::Puma\n",
      "config/puma.rb" => "Puma\n", "config/puma/production.rb" => "Puma\n", "config/heddle.rb" => "# Puma\n" }
      .each { |name, text| File.write(File.join(@folder, name), text) }

    assert_equal [["config/initializers/a.rb:2", "refers to Rails::Server, which only `rails server` defines"],
                  ["config/initializers/b.rb:1", "refers to Rails::Server, which only `rails server` defines"],
                  ["config/initializers/c.rb:1", "refers to the constant Puma"]],
                 deployment.map { |one| [one.subject, one.text] }
  end

  # This checkout's own: all but Heddle's are in the group development.
  def test_gems_that_production_does_not_load_are_left_out
    root = File.expand_path("../..", __dir__)
    environment = { "BUNDLE_GEMFILE" => "#{root}/Gemfile", "BUNDLE_PATH" => "#{root}/vendor/bundle",
                    "RUBYOPT" => "-rbundler/setup", "GEM_HOME" => nil, "GEM_PATH" => nil }
    program = 'require "heddle/cli"; puts Heddle::CLI::Doctor::Libraries.in_production.map(&:name)'
    output, status = Open3.capture2(environment, RbConfig.ruby, "-I#{root}/lib", "-e", program)

    assert_predicate status, :success?, output
    assert_includes output.split, "rack"
    refute_includes output.split, "sentry-ruby"
  end

  def test_versions_count
    old = Libraries::KNOWN.find { |known| known.name == "mongoid" }

    assert old.concerns?(Gem::Specification.new("mongoid", "8.1.0"))
    refute old.concerns?(Gem::Specification.new("mongoid", "9.1.0"))
    refute old.concerns?(Gem::Specification.new("mongo", "8.1.0"))
  end

  # Versions of each that its entry is about, and of those that it is not.
  VERSIONS = {
    "sequel" => [%w[5.31.0], %w[5.32.0]], "mongoid" => [%w[9.0.5], %w[9.1.0]], "request_store" => [%w[1.7.0], []],
    "rack-mini-profiler" => [%w[4.0.0], []],
    "puma_worker_killer" => [%w[1.0.0], []], "unicorn-worker-killer" => [%w[0.4.5], []],
    "sqlite3" => [%w[2.7.0], []], "pitchfork" => [%w[0.18.0], []], "puma" => [%w[8.0.2], []]
  }.freeze

  def test_every_entry_is_found_by_its_versions_and_says_what_is_wrong
    assert_equal VERSIONS.keys.sort, Libraries::KNOWN.map(&:name).sort
    Libraries::KNOWN.each do |known|
      concerned, others = VERSIONS.fetch(known.name)
      versions = ->(list) { list.select { |one| known.concerns?(Gem::Specification.new(known.name, one)) } }

      assert_equal [concerned, []], [versions.call(concerned), versions.call(others)], known.name
      refute_empty known.text
      assert_includes %i[note warning problem], known.level
      refute_empty known.advice.to_s, known.name unless known.level == :note
    end
  end

  # What the entries say of them, asked of the gems themselves; test/adaptations/isolation_test.rb tries the effect.
  # @return [String] what another fiber of the thread sees of what one has set
  def seen_by_another_fiber(gem, set, read)
    program = "#{gem}; Fiber.new { #{set} }.resume; p Fiber.new { #{read} }.resume"
    output, errors, status = Open3.capture3(RbConfig.ruby, "-W0", "-r#{GEM_PATHS}", "-e", program)

    assert_predicate status, :success?, errors
    output.chomp
  end

  GEM_PATHS = File.expand_path("../../bin/support/gem_paths.rb", __dir__)

  def test_real_gems_do_what_their_entries_say
    set = "I18n.enforce_available_locales = false; I18n.locale = :de"
    old = "gem 'i18n', '1.14.8'; require 'i18n'"
    newer = "gem 'i18n', '>= 1.15'; require 'i18n'"

    assert_equal ":de", seen_by_another_fiber(old, set, "I18n.locale"), "by thread"
    assert_equal ":en", seen_by_another_fiber(newer, set, "I18n.locale"), "by fiber"
    assert_equal "[nil, nil]", seen_by_another_fiber("require 'request_store'", "RequestStore[:a] = 1",
                                                     "[RequestStore[:a], Fiber.new { RequestStore[:a] }.resume]")
    sentry = "require 'sentry-ruby'; Sentry.init { |one| one.sdk_logger = Logger.new(nil) }"

    assert_equal "{id: 1}".inspect, seen_by_another_fiber(
      sentry, "Sentry.clone_hub_to_current_thread; Sentry.set_user(id: 1)",
      "Sentry.get_current_scope.user.map { |key, id| \"{\#{key}: \#{id}}\" }.first.to_s"
    )
  end

  # Each request has its own values of these, unless the option isolate leaves them out.
  def test_a_gem_whose_thread_variable_is_not_isolated_is_a_problem
    assert_equal [:ok], found(spec("i18n", "1.14.8"), spec("sentry-ruby", "5.20.0")).map(&:level)
    output, status = doctor_without_isolation("gem 'i18n', '1.14.8'\nrequire 'i18n'")

    assert_equal 1, status, output
    assert_match(
      /^!! i18n 1\.14\.8: not adapted, because the option adapt or isolate excludes it\. The change would/, output
    )
    assert_match(/add i18n_config to the option isolate/, output)
  end

  def test_sentry_that_keeps_its_hub_by_fiber_needs_no_isolation
    { thread: ["!!", 1], fiber: ["--", 0] }.each do |level, (mark, expected)|
      output, status = doctor_without_isolation("require 'sentry-ruby'\n" \
                                                "Sentry.init { |one| one.hub_isolation_level = :#{level} }")

      assert_equal expected, status, output
      assert_match(/^#{mark} sentry-ruby [\d.]+: not adapted, because the option adapt or isolate excludes it/, output)
    end
  end

  def doctor_without_isolation(code)
    File.write(File.join(@folder, "config.ru"), "#{code}\nrun ->(_env) { }\n")
    output, status = Open3.capture2e({ "HEDDLE_ISOLATE" => "off" }, RbConfig.ruby, "-r#{GEM_PATHS}",
                                     *ServedProcess::HEDDLE.drop(1), "doctor", chdir: @folder)
    [output, status.exitstatus]
  end

  def test_state_shared_between_fibers_is_not_a_problem_in_thread_mode
    findings = Libraries.new([spec("sequel", "5.31.0")], mode: :thread).findings

    assert_equal %i[ok note], findings.map(&:level)
    assert_match(/\Aa problem only in mode fiber: all requests of a thread share one connection/, findings.last.text)
  end

  def test_an_unknown_gem_that_uses_thread_variables_is_shown_with_the_line
    finding = found(spec("odd", "1.0", "# fine\nThread.current.thread_variable_set(:a, 1)\n")).last

    assert_equal [:note, "odd 1.0"], [finding.level, finding.subject]
    assert_match(/\(odd\.rb:2\)/, finding.text)
    assert_equal [:ok], found(spec("even", "1.0", "# thread_variable_set(\nThread.current[:a] = 1\n")).map(&:level)
  end

  def test_the_machine_is_checked_without_an_application
    output, status = doctor

    assert_predicate status, :success?, output
    assert_match(/^ok +Ruby: #{Regexp.escape(RUBY_VERSION)} /, output)
    assert_match(/selector: \w+/, output)
    assert_match(
      /application: this folder has no config\.ru\n +to check an application, run heddle doctor in its folder/, output
    )
  end

  def test_the_memory_is_that_of_the_configuration
    File.write(File.join(@folder, "heddle.rb"), "memory_limit '200m'\n")
    output, = doctor

    assert_match(/^ok +system: .*, 200 MiB for the server, /, output)
    assert_match(/^! +memory: 200 MiB for all processes of the server\n +use a larger container, or raise memory_limit/,
                 output)
  end

  # As outside of Linux, where nothing reports it.
  def test_memory_of_unknown_size_is_not_reported_as_zero
    unknown = Class.new(Heddle::Server::Configuration) { def memory_budget = nil }
    finding = Heddle::CLI::Doctor::Machine.new(unknown.new).__send__(:kernel)

    assert_match(/, memory of unknown size, \d+ processors/, finding.text)
  end

  def test_an_application_is_loaded_and_its_gems_are_checked
    File.write(File.join(@folder, "config.ru"), "run ->(_env) { [200, {}, []] }\n")
    findings = JSON.parse(doctor("--json").first)

    assert_includes findings.map { |one| one["subject"] }, "gems"
    assert_equal %w[level subject text advice], findings.first.keys
  end

  def test_an_application_that_cant_be_loaded_is_a_problem_and_no_backtrace
    File.write(File.join(@folder, "config.ru"), "raise 'broken'\n")
    output, status = doctor

    assert_equal 1, status.exitstatus
    assert_match(/^!! application: config\.ru can't be loaded:\n +RuntimeError: broken/, output)
    assert_match(/Ruby: /, output, "the machine all the same")
    refute_match(%r{lib/heddle/cli}, output)
  end

  def test_an_error_in_the_configuration_is_a_problem_and_the_rest_is_checked
    File.write(File.join(@folder, "heddle.rb"), "wrokers 3\n")
    output, status = doctor

    assert_equal 1, status.exitstatus
    assert_match(/^!! configuration: heddle\.rb:1: .*Did you mean workers/, output)
    assert_match(/Ruby: /, output)
  end

  # What it says of each.
  def protections(**environment)
    unset = %w[HEDDLE_PROTECT HEDDLE_WORKERS HEDDLE_MODE HEDDLE_ENVIRONMENT RAILS_ENV APP_ENV RACK_ENV]
            .to_h { |name| [name, nil] }
    environment = { **unset, **environment.transform_keys(&:to_s) }
    output, = Open3.capture2e(environment, *ServedProcess::HEDDLE, "doctor", chdir: @folder)
    @output = output
    rows = output.scan(/^(ok|--) protection: (on|off): ([\w ,]+\w)(?: \((.*)\))?$/)
    rows.each_with_object({}) do |(mark, state, names, text), found|
      assert_equal({ "ok" => "on", "--" => "off" }[mark], state)
      names.split(", ").each { |name| found[name] = [state, text].compact }
    end
  end

  def test_the_report_says_whether_isolation_is_on_and_why
    found = protections

    assert_equal ["handoff", "offload of core functions", "offload of extensions", "preempt", "stall_report",
                  "callback_report", "guard pages"], found.keys
    assert_equal [%w[on], %w[on]], found.values_at("preempt", "stall_report")
    assert_equal ["off", "needs a second worker"], found["handoff"]
    assert_equal %w[on], protections(HEDDLE_WORKERS: "2")["handoff"]
    off = protections(HEDDLE_PROTECT: "off").except("guard pages")

    assert_equal 6, off.size
    assert_equal [["off", "option protect, HEDDLE_PROTECT"]], off.values.uniq
    found = protections(HEDDLE_PROTECT: "preempt", HEDDLE_MODE: "thread")

    assert_equal ["off", "requests run in threads, mode thread: HEDDLE_MODE"], found["preempt"]
  end

  def test_the_report_names_functions_that_offload_cannot_intercept
    found = protections(HEDDLE_OFFLOAD_IMPORTS: "-rb_thread_io_blocking_call")

    assert_equal ["off", "rb_thread_io_blocking_call: excluded by HEDDLE_OFFLOAD_IMPORTS"],
                 found["offload of file locks and fsync"]
  end

  def test_the_report_warns_of_a_ruby_that_was_not_tried
    program = "require 'heddle/platform'; Heddle::Platform.send(:remove_const, :TESTED); " \
              "Heddle::Platform::TESTED = { 'linux' => ['3.2'] }; load #{ServedProcess::HEDDLE.last.dump}"
    output, = Open3.capture2e(*ServedProcess::HEDDLE[..-2], "-e", program, "doctor", chdir: @folder)

    assert_match(/^! +Ruby: .*; Ruby \d\.\d is newer than 3\.2, the newest version that Heddle was tested/, output)
  end

  def test_the_report_names_the_line_that_switches_protections_off_and_the_next_step
    File.write(File.join(@folder, "heddle.rb"), "workers 2\nmode :thread\n")
    found = protections

    assert_equal ["off", "requests run in threads, mode thread: heddle.rb:2"], found["stall_report"]
    assert_equal 1, @output.scan("mode thread: heddle.rb:2").size
    assert_match(/^ +without that setting, each request runs in a fiber.*HEDDLE_MODE=fiber heddle doctor/, @output)
    File.write(File.join(@folder, "heddle.rb"), "protect :preempt\n")

    assert_equal ["off", "option protect, heddle.rb:1"], protections["stall_report"]
    refute_includes @output, "without that line"
  end

  # Rails' own default is :thread, and what an application does not say Heddle says when it serves it.
  RAILS = <<~RUBY
    require "rails"
    require "action_controller/railtie"
    class Shop < Rails::Application
      config.load_defaults 8.0
      config.eager_load = false
      config.secret_key_base = "0" * 64
      config.logger = Logger.new(nil)
      %s
    end
    Shop.initialize!
    run Shop
  RUBY

  def rails_doctor(line = "", mode: nil, **more)
    File.write(File.join(@folder, "config.ru"), format(RAILS, line))
    environment = { "HEDDLE_MODE" => mode, **more.transform_keys(&:to_s) }
    output, errors, status = Open3.capture3(environment, RbConfig.ruby, "-r#{GEM_PATHS}",
                                            *ServedProcess::HEDDLE.drop(1), "doctor", chdir: @folder)
    [output + errors, status.exitstatus]
  end

  def test_an_application_of_rails_that_says_nothing_of_isolation_is_not_a_problem_in_any_mode
    [nil, "thread"].each do |mode|
      output, status = rails_doctor(mode:)

      assert_match(/^-- Rails: reloading of code is on/, output)
      assert_equal 0, status, output
    end
  end

  CABLE = <<~RUBY
    module ::ActionCable
      def self.server = Struct.new(:config).new(Struct.new(:cable).new({ "adapter" => "async" }))
    end
  RUBY

  def test_state_of_one_process_is_named_where_several_serve
    setting = "config.cache_store = :memory_store\n#{CABLE}"
    output, = rails_doctor(setting, RAILS_ENV: "production", HEDDLE_WORKERS: "2")

    assert_match(/^! +config.cable\.yml: adapter async: a broadcast reaches only the clients of the worker/, output)
    assert_match(/^! +config\.cache_store: memory_store: each worker has its own cache/, output)
    output, = rails_doctor(setting, RAILS_ENV: "production", HEDDLE_WORKERS: "1")

    refute_match(/cable\.yml|cache_store/, output)
  end

  def test_an_application_of_rails_that_insists_on_threads_is_a_problem
    output, status = rails_doctor("config.active_support.isolation_level = :thread")

    assert_equal 1, status
    assert_match(/^!! application: config.active_support.isolation_level is :thread, but .* --mode thread/, output)
  end
end
