# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "cli/demo/browser"
require "json"
require "stringio"

# A browser reads the recorder's files, by the rules of its viewers.
class RecorderBrowserTest < Minitest::Test
  Recorder = Heddle::Server::Recorder

  # What was recorded, as the extension's copies are read.
  Recorded = Struct.new(:stretches, :samples, :names) do
    def name(request) = names.fetch(request)
  end

  STRETCHES = [[1.0, 1.1, 7, :running, false, "a.rb:1 in a"], [1.0, 1.1, 8, :ready, false, nil],
               [1.1, 1.2, 8, :running, false, nil], [1.1, 1.3, 7, :query, true, "a.rb:2 in b"],
               [1.15, 1.16, 0, :gc, false, nil]].freeze
  SAMPLES = [[1.0, 1.01, 7, :ruby, false, "a.rb:1", ["b.rb:2 in <b>", "a.rb:1 in a"]],
             [1.01, 1.02, 7, :ruby, false, "a.rb:1", ["c.rb:3", "a.rb:1 in a"]]].freeze
  # Reads the file as the viewers do. Slices of a track must be nested or apart, an arrow begins and ends in a slice,
  # and each track has a name. Debian's Chromium comes without chrome://tracing.
  READ = <<~JS
    const trace = JSON.parse(%s), problems = [], names = {}, slices = {}, arrows = {};
    for (const event of trace.traceEvents) {
      if (event.ph == "M") names[event.tid] = event.args.name;
      else if (event.ph == "X")
        (slices[event.tid] ??= []).push({ name: event.name, from: event.ts, to: event.ts + event.dur });
      else if (event.ph == "s" || event.ph == "f") (arrows[event.id] ??= {})[event.ph] = event;
      else problems.push(`unknown phase ${event.ph}`);
    }
    const enclosing = event =>
      (slices[event.tid] ?? []).filter(slice => slice.from <= event.ts && event.ts < slice.to).at(-1)?.name;
    for (const [tid, track] of Object.entries(slices)) {
      if (!names[tid]) problems.push(`track ${tid} has no name`);
      for (const [index, one] of track.entries())
        for (const other of track.slice(index + 1))
          if (one.from < other.from && other.from < one.to - 0.01 && one.to < other.to - 0.01)
            problems.push(`${one.name} and ${other.name} overlap`);
    }
    const named = tid => (slices[tid] ?? []).sort((a, b) => a.from - b.from || b.to - a.to).map(slice => slice.name);
    const tracks = Object.fromEntries(Object.entries(names).map(([tid, name]) => [name, named(tid)]));
    const joined = Object.values(arrows).map(({ s, f }) => [enclosing(s), enclosing(f), s.ts <= f.ts]);
    return { problems, tracks, arrows: joined };
  JS

  def test_chromium_reads_tracks_stacks_and_arrows
    browser = Browser.new(need_program("chromium"), need_program("chromedriver"))
    browser.visit("about:blank")
    read = browser.run(format(READ, JSON.generate(trace)))

    assert_empty read["problems"]
    assert_equal({ "stalls" => [], "garbage collections" => ["gc"], "GET /a" => ["running"],
                   "GET /b" => %w[ready running], "tasks of GET /a" => ["query"],
                   "stacks of GET /a" => ["a.rb:1 in a", "b.rb:2 in <b>", "c.rb:3"] }, read["tracks"])
    assert_equal [["running", "ready", true]], read["arrows"]
  ensure
    browser&.close
  end

  private

  def trace
    stretches = STRETCHES.map { |one| Recorder::Snapshot::Stretch.new(*one, false) }
    samples = SAMPLES.map { |one| Recorder::Snapshot::Sample.new(*one) }
    recorded = Recorded.new(stretches, samples, { 7 => "GET /a", 8 => "GET /b" })
    StringIO.new.tap { |io| Recorder::Trace.new(recorded, [], Recorder::Cause.new(recorded)).write(io) }.string
  end
end
