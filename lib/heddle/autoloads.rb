# frozen_string_literal: true

module Heddle
  # Loads a constant when it is first used, from the file of its name, as Zeitwerk does: TCPBind is in tcp_bind.rb.
  #
  # @api private
  module Autoloads
    ACRONYMS = %w[DNS EDNS H1 H2 HTTP JIT TCP TLS UDP].to_h { |name| [name.downcase, name] }.freeze
    private_constant :ACRONYMS

    class << self
      # @param namespace [Module]
      # @param folder [String] such as "heddle/server"; each of its files defines one constant of the namespace
      # @return [void]
      def add(namespace, folder)
        each_file(folder) { |file| namespace.autoload(constant(file), "#{folder}/#{file}") }
      end

      # Loads all files of a folder at once.
      # @param folder [String]
      # @return [void]
      def load(folder) = each_file(folder) { |file| require "#{folder}/#{file}" }

      private

      def each_file(folder)
        Dir.glob("*.rb", base: File.expand_path("../#{folder}", __dir__)) { |file| yield file.delete_suffix(".rb") }
      end

      def constant(file) = file.split("_").map { |word| ACRONYMS.fetch(word) { word.capitalize } }.join
    end
  end
end
