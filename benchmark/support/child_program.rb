# frozen_string_literal: true

# The program of every contestant's process: child_program.rb SUITE ROW CONTESTANT SIZES-AS-JSON
# The row `probe` only asks whether the contestant works here at all.

require_relative "bench"

# What the libraries print must not be taken for a result.
answers = $stdout.dup
answers.sync = true
$stdout.reopen($stderr)

suite_name, row_key, contestant_key, sizes = ARGV
say = ->(message) { answers.puts(JSON.generate(message)) }

begin
  suite = Bench::Suite.load(suite_name)
  contestant = suite.contestant(contestant_key)
  contestant.prepare
  if row_key == "probe"
    ran = false
    contestant.run { ran = true }
    raise Bench::Contestant::Unavailable, "a fiber that was started never ran" unless ran

    say.call(version: contestant.version)
  else
    row = suite.row(row_key)
    size = JSON.parse(sizes, symbolize_names: true)
    GC.start
    sample = row.measure(contestant, size, &say)
    say.call(sample.merge(rss_mb: Bench::ProcessUsage.peak_megabytes))
  end
rescue SystemExit
  raise
rescue Exception => e
  # A fiber library may have left threads or a loop behind that would keep the process from ending.
  words = e.message.lines.first.to_s.strip.gsub(%r{(?:/[\w.+-]+)+/}, "")
  say.call(failure: "#{e.class}: #{words}"[0, 200])
end
answers.close
exit!(0)
