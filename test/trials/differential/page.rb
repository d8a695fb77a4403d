# frozen_string_literal: true

require "rbconfig"
require_relative "suite"

module Trials
  # docs/gems.md: a row a suite between two marks, written by the command that ran it.
  class Page
    FILE = File.join(Suite::ROOT, "docs/gems.md")
    HEAD = "| suite | Ruby | its examples | run | differences | expected differences |\n| - | - | - | - | - | - |\n"

    def initialize(file = FILE)
      @file = file
    end

    # @param comparison [Comparison]
    def update(comparison, ruby:, seed:)
      suite = comparison.suite
      version = IO.popen([ruby, "-e", "print RUBY_VERSION"], &:read)
      table = between("table").lines.drop(2).to_h { |line| [line[/\A\| ([^|]+?) \|/, 1], line] }
      table[suite.settings["gem"] || suite.name] = row(comparison, version, seed)
      put("table", HEAD + in_order(table).join)
      reasons = between("reasons").split(/^(?=### )/).to_h { |part| [part[/\A### (.+)/, 1], part] }
      reasons.delete(nil)
      expected = comparison.expected
      reasons[suite.name] = section(suite.name, expected)
      reasons.delete(suite.name) if expected.empty?
      put("reasons", Suite.all.filter_map { |one| reasons[one.name] }.join)
    end

    private

    def in_order(table) = Suite.all.filter_map { |one| table[one.settings["gem"] || one.name] }

    def row(comparison, version, seed)
      outcomes = comparison.outcomes.sort_by { |_, number| -number }.map { |outcome, number| "#{number} #{outcome}" }
      ways = comparison.runs.keys.drop(1).map { |way| way == "chaos" ? "chaos (seed #{seed})" : way }
      unexpected = comparison.unexpected.map { |_, example,| example }.uniq.size
      expected = comparison.expected.values.flatten.uniq.size
      "| #{[comparison.suite.settings["gem"] || comparison.suite.name, version,
            "#{comparison.examples}: #{outcomes.join(", ")}", ways.join(", "), unexpected, expected].join(" | ")} |\n"
    end

    def section(name, expected)
      lines = expected.map do |reason, examples|
        named = examples.first(6).map { |example| "`#{example}`" }.join(", ")
        "- #{named}#{", and #{examples.size - 6} more" if examples.size > 6}: #{reason}\n"
      end
      "### #{name}\n\n#{lines.join}\n"
    end

    def between(mark) = File.read(@file)[/<!-- #{mark}: .*? -->\n(.*?)<!-- end of #{mark} -->/m, 1]

    def put(mark, text)
      page = File.read(@file)
      start = page[/<!-- #{mark}: .*? -->\n/]
      head, rest = page.split(start, 2)
      finish = "<!-- end of #{mark} -->"
      File.write(@file, [head, start, text, finish, rest.split(finish, 2).last].join)
    end
  end
end
