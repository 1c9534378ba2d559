// Protogen turns pluginapi's proto file into Go without protoc: it compiles the
// file with protocompile and hands it to protoc-gen-go and protoc-gen-go-grpc,
// both pinned in tools/go.mod.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: protogen DIR FILE.proto")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func generate(dir, file string) error {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return err
	}
	var descriptors []*descriptorpb.FileDescriptorProto
	for _, f := range files {
		descriptors = append(descriptors, protodesc.ToFileDescriptorProto(f))
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
			FileToGenerate: []string{file},
			Parameter:      proto.String("paths=source_relative"),
			ProtoFile:      descriptors,
		})
		if err != nil {
			return err
		}
		cmd := exec.Command("go", "tool", plugin)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		var response pluginpb.CodeGeneratorResponse
		if err := proto.Unmarshal(out, &response); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		if response.Error != nil {
			return fmt.Errorf("%s: %s", plugin, response.GetError())
		}
		for _, f := range response.File {
			if err := os.WriteFile(filepath.Join(dir, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
