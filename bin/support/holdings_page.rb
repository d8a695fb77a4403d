# frozen_string_literal: true

require "yaml"

module Heddle
  # The section of docs/security.md about what one client can hold, made of docs/holdings.yml.
  module HoldingsPage
    PATH = File.expand_path("../../docs/security.md", __dir__)
    TABLE = YAML.safe_load_file(File.expand_path("../../docs/holdings.yml", __dir__)).freeze
    SECTION = /^## Holdings\n.*(?=^## Published attacks$)/m

    INTRODUCTION = <<~TEXT
      ## Holdings

      One row for each stage at which a client can hold a resource, made of `docs/holdings.yml` by `bin/docs`.
      `bin/hold` fills the resources of a server, and prints what another client sees meanwhile.

      | stage: resources | one client has at most | for at most | bound of all clients | who gives way | test |
      | - | - | - | - | - | - |
    TEXT
    REASONS = <<~TEXT

      At these stages a client holds none of the resources, or no more of them than another stage says:

      | stage | resources | none, because |
      | - | - | - |
    TEXT
    private_constant :INTRODUCTION, :REASONS

    class << self
      # @return [String]
      def text = File.read(PATH).sub(SECTION) { section }

      private

      def section = "#{INTRODUCTION}#{rows("holds") { |row| held(row) }}#{REASONS}#{rows("none") { |row| free(row) }}\n"

      def rows(kind) = TABLE["stages"].flat_map { |stage| stage[kind].map { |row| yield([stage["stage"], *row]) } }.join

      def held((stage, resources, *cells, tests))
        "| #{stage}: #{resources.join(", ")} | #{cells.join(" | ")} | #{tests.map { |one| "`#{one}`" }.join(", ")} |\n"
      end

      def free((stage, resources, reason)) = "| #{stage} | #{resources.join(", ")} | #{reason} |\n"
    end
  end
end
