# frozen_string_literal: true

# Adds up what the test processes counted, and tells it.
class TestReport
  # Ruby lists these by the hundred when it crashes: loaded features and mapped memory. They hide the failure.
  CRASH_LISTS = /^ *(?:\d+ \S+\.(?:rb|so)|\h{8,}-\h{8,} [r-][w-][x-][ps] .*)\n/
  # Of C tests that passed beside one that failed.
  PASSED = /^ *ok |^ *started \S+ \(/
  # Lines of a failure that are printed; of more, the first and the last.
  LINES = 300

  attr_reader :passed, :failed, :skipped

  # @param some_may_be_empty [Boolean] a process that ran no test is no mistake (tests were chosen by name)
  # @param durations [Integer] how many of the files that took most processor time are named at the end
  def initialize(out: $stdout, some_may_be_empty: false, durations: 0)
    @out = out
    @some_may_be_empty = some_may_be_empty
    @durations = durations
    @passed = @failed = @skipped = 0
    @failures = []
    @skips = Hash.new(0)
    @results = Hash.new { |results, file| results[file] = [] }
    @started = now
  end

  def add(result)
    @passed += result.passed
    @failed += result.failed
    @skipped += result.skipped
    @failures.concat(named(result))
    result.skips.each { |skip| @skips[skip] += 1 }
    @results[result.file || result.title] << result
    tell(result)
  end

  # Prints what failed and what was skipped, then the closing line as the very last one.
  # @param ci [Boolean] a skipped test fails the run
  # @return [Boolean] whether the run is good
  def close(ci: ENV["CI"] == "true")
    tell_durations
    @skips.sort.each { |skip, count| @out.puts "skipped#{" (#{count} times)" if count > 1}: #{skip}" }
    list_failures
    @out.puts "In CI no test may be skipped: bin/setup --system installs what they need." if ci && @skipped > 0
    @out.puts "No test was run." if @passed + @failed == 0
    @out.puts format("tests: %<seconds>.0f s, %<processor>.0f s of processor time",
                     seconds: now - @started, processor: @results.each_value.sum { |results| processor(results) })
    @out.puts "#{@passed} passed, #{@failed} failed, #{@skipped} skipped"
    @failed == 0 && @passed > 0 && !(ci && @skipped > 0)
  end

  private

  def named(result)
    names = result.failures.map { |name| name.start_with?(result.title) ? name : "#{result.title} #{name}" }
    names.any? && result.again ? [*names, "  once more: #{result.again}"] : names
  end

  def list_failures
    @failures.each { |name| @out.puts name.start_with?(" ") ? name : "failed: #{name}" }
  end

  def tell(result)
    return if empty?(result) && @some_may_be_empty

    counts = { passed: result.passed, failed: result.failed, skipped: result.skipped }.reject { |_, n| n == 0 }
    line = counts.map { |word, n| "#{n} #{word}" }.join(", ")
    @out.puts format("%<title>s: %<line>s (%<seconds>.1f s, %<processor>.1f s of processor time)",
                     title: result.title, seconds: result.seconds, processor: result.processor,
                     line: line.empty? ? "no test" : line)
    @out.puts readable(result.output).gsub(/^/, "    ") if result.failed > 0
  end

  def readable(output)
    lines = output.gsub(CRASH_LISTS, "").lines.grep_v(PASSED)
    return lines.join if lines.size <= LINES

    [*lines.first(LINES / 2), "… #{lines.size - LINES} lines …\n", *lines.last(LINES / 2)].join
  end

  def tell_durations
    @results.max_by(@durations) { |_, results| processor(results) }.each do |file, results|
      @out.puts format("%<processor>.1f s of processor time, %<sum>.1f s: %<file>s (%<runs>d runs, max %<most>.1f s)",
                       processor: processor(results), sum: results.sum(&:seconds), file:, runs: results.size,
                       most: results.map(&:seconds).max)
    end
  end

  def processor(results) = results.sum(&:processor)

  def empty?(result) = result.passed + result.failed + result.skipped == 0

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
