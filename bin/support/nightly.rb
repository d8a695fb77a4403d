# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require "time"
require_relative "sanitized_content"
require_relative "test_command"

# Runs the stages of .ci/nightly one after another and writes the result of each into .ci/nightly.json, which a person
# commits. A stage that has passed at the same commit can be left out (`resume`), so that a run which was interrupted
# continues there.
class Nightly
  # A program that runs tests. `sanitizer` and `tests` say what has run under a sanitizer when it passes; the file notes
  # their digests (SanitizedContent).
  Stage = Data.define(:name, :command, :environment, :sanitizer, :tests) do
    def initialize(environment: {}, sanitizer: nil, tests: [], **) = super
  end

  # Lines of a failed stage's log that are printed.
  LINES = 60
  NOT_RUN = /^not run: (.+)$/

  # @param stages [Array<Stage>]
  # @param root [String] the checkout
  def initialize(stages, root:, out: $stdout)
    @stages = stages
    @root = root
    @out = out
    @path = File.join(root, SanitizedContent::RESULTS)
    @logs = File.join(root, "tmp/nightly")
  end

  # @param names [Array<String>] stages whose name begins with one of these; all without any
  # @param resume [Boolean] without those that have passed at this commit
  # @return [Boolean] whether all of them have passed
  def run(names = [], resume: false)
    chosen = choose(names)
    chosen = chosen.reject { |stage| passed?(stage.name) } if resume
    FileUtils.mkdir_p(@logs)
    failed = chosen.reject { |stage| run_stage(stage) }
    @out.puts summary
    failed.empty?
  end

  # @return [String] "passed", "failed" or "incomplete", of all stages at this commit
  def result
    results = @stages.map { |stage| recorded.dig("stages", stage.name) }
    return "failed" if results.any? { |stage| stage && stage["commit"] == commit && stage["result"] == "failed" }

    @stages.all? { |stage| passed?(stage.name) } ? "passed" : "incomplete"
  end

  private

  def choose(names)
    unknown = names.reject { |name| @stages.any? { |stage| stage.name.start_with?(name) } }
    known = @stages.map(&:name).join(", ")
    raise ArgumentError, "no stage begins with #{unknown.first.inspect} (there are: #{known})" if unknown.any?

    names.empty? ? @stages : @stages.select { |stage| stage.name.start_with?(*names) }
  end

  def run_stage(stage)
    log = File.join(@logs, "#{stage.name.tr(" /", "-")}.log")
    @out.puts "== #{stage.name} (#{log.delete_prefix("#{@root}/")})"
    started = now
    succeeded = succeeds?(stage, log)
    record(stage, File.read(log).scrub, succeeded, now - started)
  end

  # A group of its own, so that all that a stage has started ends with this program.
  def succeeds?(stage, log)
    pid = ended_by = nil
    before = %w[INT TERM].to_h do |name|
      [name, trap(name) { |number| end_group(pid) if (ended_by = number) }]
    end
    pid = Process.spawn(stage.environment, *stage.command, chdir: @root, out: log, err: %i[child out], in: File::NULL,
                                                           pgroup: true)
    end_group(pid) if ended_by # it came before the process was known
    status = Process.wait2(pid).last
    raise SignalException, ended_by if ended_by

    status.success?
  ensure
    before&.each { |name, handler| trap(name, handler || "DEFAULT") }
  end

  def end_group(pid)
    Process.kill(:TERM, -pid) if pid
  rescue Errno::ESRCH
    nil # it has ended
  end

  def record(stage, output, succeeded, seconds)
    counts = counted(output, succeeded)
    passed = succeeded && counts["failed"].zero?
    recorded["stages"][stage.name] = {
      "result" => passed ? "passed" : "failed", **counts, "seconds" => seconds.round,
      "date" => Time.now.utc.iso8601, "commit" => commit, **left_out(output)
    }
    record_digests(stage) if passed && stage.sanitizer
    write
    tell(recorded["stages"][stage.name], output)
    passed
  end

  # A program without a closing line, a benchmark say, counts as one test.
  def counted(output, succeeded)
    counts = output.scan(TestCommand::CLOSING_LINE).last&.map(&:to_i)
    %w[passed failed skipped].zip(counts || (succeeded ? [1, 0, 0] : [0, 1, 0])).to_h
  end

  # What a stage has left out because this machine can't have it.
  def left_out(output)
    names = output.scan(NOT_RUN).flat_map { |(line)| line.split(", ") }
    names.empty? ? {} : { "not_run" => names }
  end

  def tell(result, output)
    @out.puts output.lines.last(LINES).map { |line| "    #{line}" } unless result["result"] == "passed"
    @out.puts "not run: #{result["not_run"].join(", ")}" if result["not_run"]
    @out.puts format("%<result>s: %<passed>d passed, %<failed>d failed, %<skipped>d skipped in %<seconds>d s",
                     **result.transform_keys(&:to_sym))
  end

  # Other stages have tests with the same sanitizer.
  def record_digests(stage)
    known = recorded["sanitized"].fetch(stage.sanitizer, {}).select { |test, _| File.file?(File.join(@root, test)) }
    digests = SanitizedContent.new(@root).digests(stage.sanitizer, stage.tests)
    recorded["sanitized"][stage.sanitizer] = known.merge(digests).sort.to_h
  end

  # Stages that there are no more leave the file.
  def write
    stages = recorded["stages"].slice(*@stages.map(&:name))
    content = { "result" => result, "date" => Time.now.utc.iso8601, "commit" => commit, "stages" => stages,
                "sanitized" => recorded["sanitized"] }
    File.write("#{@path}.new", "#{JSON.pretty_generate(content)}\n")
    File.rename("#{@path}.new", @path)
  end

  def recorded
    @recorded ||= JSON.parse(File.read(@path))
  rescue Errno::ENOENT
    @recorded = { "stages" => {}, "sanitized" => {} }
  end

  def passed?(name) = recorded.dig("stages", name)&.values_at("result", "commit") == ["passed", commit]

  def summary
    counts = @stages.map { |stage| passed?(stage.name) }.tally
    "nightly: #{result}, #{counts[true].to_i} of #{@stages.size} stages have passed at #{commit}"
  end

  # The commit, with a mark when files differ from it.
  def commit
    @commit ||= begin
      head, status = Open3.capture2("git", "rev-parse", "--short=12", "HEAD", chdir: @root, err: File::NULL)
      changes, = Open3.capture2("git", "status", "--porcelain", "--", ".", ":!#{SanitizedContent::RESULTS}",
                                chdir: @root, err: File::NULL)
      status.success? ? "#{head.strip}#{"+changes" unless changes.empty?}" : "unknown"
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
