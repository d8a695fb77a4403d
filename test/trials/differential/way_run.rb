# frozen_string_literal: true

require "fileutils"
require "json"
require "rbconfig"

module Trials
  # One suite, one way: runs its files, and runs on after an example that ends or blocks the process.
  class WayRun
    WAYS = %w[plain loop protected chaos].freeze
    # On request: another scheduler, to tell what any scheduler changes from what Heddle does.
    OTHER = "async"
    # Crashes and hangs of one process after which it is given up.
    PATIENCE = 25

    # Example => what became of it: pass, fail, error, skip, crash or hang, or what it printed.
    attr_reader :results
    attr_reader :messages

    # @param place [Hash] `folder`, `environment`, `prelude` (Ruby code) and `load_path` of {Sources}
    def initialize(suite, way, place:, ruby: RbConfig.ruby, seed: 1, logs: nil)
      @suite = suite
      @way = way
      @place = place
      @ruby = ruby
      @seed = seed
      @logs = logs
      @results = {}
      @messages = {}
    end

    # @return [Hash{String => String}]
    def run
      FileUtils.mkdir_p(@logs)
      build_debug if @way == "chaos" && !ENV["HEDDLE_NATIVE"]
      files = @suite.files(@place.fetch(:folder))
      abort "#{@suite.name}: no test files in #{@place.fetch(:folder)}" if files.empty?
      (@suite.apart? ? files.map { |file| [file] } : [files]).each { |group| run_files(group) }
      results
    end

    private

    # Its offload threads pause, which the ordinary build can't (offload/thread_delay.h).
    def build_debug
      compile = File.join(Suite::ROOT, "bin/compile")
      system(@ruby, compile, "--debug", "--quiet", out: :err) or abort "could not build Heddle with --debug for chaos"
    end

    def run_files(files)
      base = File.join(@logs, "#{@way}.#{files.size == 1 ? files.first.tr("/", "_") : "all"}")
      FileUtils.rm_f(Dir.glob("#{base}.{results,skip,log}"))
      File.write("#{base}.skip", @suite.skipped.map { |name| "#{name}\n" }.join) if @suite.skipped.any?
      PATIENCE.times do
        started, status = run_process(files, base)
        in_progress = read(base)
        return if in_progress.nil? && (started.nil? || status&.exited?)

        name = in_progress || "#{files.join(" ")} as a whole"
        results[name] = status.nil? ? "hang" : "crash"
        messages[name] = status ? status.inspect.sub(/pid \d+ /, "") : "no news for #{@suite.patience} s"
        return unless in_progress

        File.write("#{base}.skip", "#{name}\n", mode: "a")
      end
    end

    # => [whether an example was started, the process's status; nil: it hung]
    def run_process(files, base)
      results_file = "#{base}.results"
      FileUtils.touch(results_file)
      pid = start_process(files, base)
      heard = clock
      size = File.size(results_file)
      until (status = Process.wait2(pid, Process::WNOHANG)&.last)
        now = File.size(results_file)
        heard = clock if now != size
        size = now
        return [true, nil] if clock - heard > @suite.patience

        sleep 0.05
      end
      [size.positive? || nil, status]
    ensure
      # Also when a signal ends the trial: TERM, INT and HUP are exceptions here.
      end_group(pid, status) if pid
    end

    def start_process(files, base)
      spawn(environment(base), *command(files), chdir: @place.fetch(:folder), pgroup: true, in: File::NULL,
                                                out: ["#{base}.log", "a"], err: %i[child out])
    end

    # Ends the process if it has no status, and what examples left running.
    def end_group(pid, status)
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH, Errno::EPERM
      nil
    ensure
      Process.wait(pid) unless status
    end

    # Takes over what the process has noted. => the example that had not ended, or nil
    def read(base)
      running = nil
      File.foreach("#{base}.results") do |line|
        event = JSON.parse(line)
        running = event["started"] if event["started"]
        next unless event["name"]

        note(event)
        running = nil if running == event["name"]
      end
      File.write("#{base}.results", "")
      running
    end

    def note(event)
      name = event["name"]
      result = event["result"]
      # One name for several examples: all of them count.
      result = [results[name], result].compact.uniq.sort.join("+") if results.key?(name) && !@suite.apart?
      results[name] = result
      messages[name] = event["message"].to_s
    end

    def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def environment(base)
      { "RUBYOPT" => nil, "CI" => nil, "HEDDLE_PROTECT" => nil, "MT_NO_PLUGINS" => "1", "SEED" => "1",
        **@place.fetch(:environment), "HEDDLE_TRIAL_WAY" => @way, "HEDDLE_TRIAL_FRAMEWORK" => @suite.framework,
        "HEDDLE_TRIAL_RESULTS" => "#{base}.results", "HEDDLE_TRIAL_SKIP" => "#{base}.skip",
        "HEDDLE_TRIAL_BESIDE" => @suite.beside, "HEDDLE_TRIAL_OWN_LOOP" => @suite.own_loop.join(" "),
        "HEDDLE_CHAOS" => @seed.to_s,
        "HEDDLE_NATIVE" => ENV.fetch("HEDDLE_NATIVE") { @way == "chaos" ? "debug" : nil } }
    end

    def command(files)
      # Its gems are chosen by `prelude`: the stand-in for Bundler leaves them alone.
      paths = [File.join(Suite::ROOT, "lib"), File.join(__dir__, "stand_ins"), *@place.fetch(:load_path)].flat_map { |path| ["-I", path] }
      prelude = "#{@place.fetch(:prelude)}; require #{File.join(__dir__, "inside.rb").dump}"
      start = { "rspec" => "exit RSpec::Core::Runner.run(ARGV)", "sus" => "Trials::Inside::Sus.start(ARGV)",
                "ruby_core" => "exit Test::Unit::AutoRunner.run(true, Dir.pwd)" }
      start = start.fetch(@suite.framework, "ARGV.slice!(0..).each { |file| load File.expand_path(file) }")
      [@ruby, *paths, "-e", "#{prelude}; #{start}", "--", *options, *files]
    end

    # The same order in all ways.
    def options
      { "rspec" => %w[--order defined --no-color] }.fetch(@suite.framework, [])
    end
  end
end
