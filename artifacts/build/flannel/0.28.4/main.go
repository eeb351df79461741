// flanneld for clusters that keep their network configuration in the Kubernetes API.
//
// Upstream's own main imports every backend, some of them with modules of cloud vendors. This one takes
// the two that need nothing but the kernel, vxlan and host-gw, and the flags of upstream's that a
// DaemonSet sets; names and meanings are the same, so a manifest fits both images.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/hostgw"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/lease"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
	"github.com/flannel-io/flannel/pkg/trafficmngr/nftables"
	"k8s.io/klog/v2"
)

var version = "unknown" // set by the linker

type options struct {
	annotationPrefix, apiURL, iface, ifaceCanReach, ifaceRegex, kubeconfig string
	healthzIP, netConf, publicIP, publicIPv6, subnetFile                   string
	healthzPort, resyncSeconds                                             int
	forwardRules, kubeSubnet, masquerade, setAvailable, version            bool
}

func parse() options {
	var o options
	klog.InitFlags(nil)
	flag.StringVar(&o.annotationPrefix, "kube-annotation-prefix", "flannel.alpha.coreos.com", "prefix of node annotations")
	flag.StringVar(&o.apiURL, "kube-api-url", "", "URL of the API; in a pod it is known")
	flag.StringVar(&o.kubeconfig, "kubeconfig-file", "", "kubeconfig; in a pod none is needed")
	flag.StringVar(&o.iface, "iface", "", "interface, name or address, that reaches the other nodes")
	flag.StringVar(&o.ifaceRegex, "iface-regex", "", "the same as a regular expression")
	flag.StringVar(&o.ifaceCanReach, "iface-can-reach", "", "take the interface with the route to this address")
	flag.StringVar(&o.netConf, "net-config-path", "/etc/kube-flannel/net-conf.json", "network configuration")
	flag.StringVar(&o.subnetFile, "subnet-file", "/run/flannel/subnet.env", "where this node's subnet is written")
	flag.StringVar(&o.publicIP, "public-ip", "", "address at which other nodes reach this one")
	flag.StringVar(&o.publicIPv6, "public-ipv6", "", "the same, IPv6")
	flag.StringVar(&o.healthzIP, "healthz-ip", "0.0.0.0", "address of the health endpoint")
	flag.IntVar(&o.healthzPort, "healthz-port", 0, "port of the health endpoint, 0 for none")
	flag.IntVar(&o.resyncSeconds, "iptables-resync", 5, "seconds between two checks of the rules")
	flag.BoolVar(&o.forwardRules, "iptables-forward-rules", true, "accept forwarded pod traffic")
	flag.BoolVar(&o.masquerade, "ip-masq", false, "masquerade traffic that leaves the pod network")
	flag.BoolVar(&o.kubeSubnet, "kube-subnet-mgr", true, "take subnets from the API; this build knows no other way")
	flag.BoolVar(&o.setAvailable, "set-node-network-unavailable", true, "clear the node's NetworkUnavailable condition")
	flag.BoolVar(&o.version, "version", false, "print the version and end")
	flag.Parse()
	return o
}

// serveHealth answers as soon as the process runs, as upstream does; it does not prove the network.
func serveHealth(o options) {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "flanneld is running") })
	address := net.JoinHostPort(o.healthzIP, strconv.Itoa(o.healthzPort))
	klog.Exit(http.ListenAndServe(address, mux))
}

func externalInterface(ctx context.Context, o options, manager subnet.Manager, config *subnet.Config) (*backend.ExternalInterface, error) {
	stack, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return nil, err
	}
	// A public address that somebody annotated on the node wins over the flags.
	stored, stored6 := manager.GetStoredPublicIP(ctx)
	public := ipmatch.PublicIPOpts{PublicIP: first(stored, o.publicIP), PublicIPv6: first(stored6, o.publicIPv6)}
	wanted := o.iface
	if wanted == "" && o.ifaceRegex == "" && o.ifaceCanReach == "" {
		wanted = first(public.PublicIP, public.PublicIPv6)
	}
	return ipmatch.LookupExtIface(wanted, o.ifaceRegex, o.ifaceCanReach, stack, public)
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

func rules(nft bool) trafficmngr.TrafficManager {
	if nft {
		return &nftables.NFTablesManager{}
	}
	return &iptables.IPTablesManager{}
}

// protect sets the packet rules. Rules of the kind that is not wanted are removed first: the
// configuration may have changed since the process before this one.
func protect(ctx context.Context, o options, config *subnet.Config, own *lease.Lease) error {
	if err := rules(!config.EnableNFTables).CleanUp(ctx); err != nil {
		return err
	}
	wanted := rules(config.EnableNFTables)
	if err := wanted.Init(ctx); err != nil {
		return err
	}
	if o.masquerade {
		// With subnets from the API a node keeps its subnet for life: what was before is what is now.
		before, before6 := ip.IP4Net{}, ip.IP6Net{}
		if config.EnableIPv4 {
			before = own.Subnet
		}
		if config.EnableIPv6 {
			before6 = own.IPv6Subnet
		}
		err := wanted.SetupAndEnsureMasqRules(ctx, config.Network, before, config.Network,
			config.IPv6Network, before6, config.IPv6Network, own, o.resyncSeconds, false)
		if err != nil {
			return err
		}
	}
	if o.forwardRules {
		wanted.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, o.resyncSeconds)
	}
	return nil
}

func run(ctx context.Context, o options, tasks *sync.WaitGroup) error {
	manager, err := kube.NewSubnetManager(ctx, o.apiURL, o.kubeconfig, o.annotationPrefix, o.netConf, o.setAvailable)
	if err != nil {
		return fmt.Errorf("no connection to the API: %w", err)
	}
	config, err := manager.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("network configuration %s: %w", o.netConf, err)
	}
	external, err := externalInterface(ctx, o, manager, config)
	if err != nil {
		return fmt.Errorf("no interface to the other nodes: %w", err)
	}
	chosen, err := backend.NewManager(ctx, manager, external).GetBackend(config.BackendType)
	if err != nil {
		return fmt.Errorf("backend %s: %w", config.BackendType, err)
	}
	network, err := chosen.RegisterNetwork(ctx, tasks, config)
	if err != nil {
		return fmt.Errorf("backend %s: %w", config.BackendType, err)
	}
	if err := protect(ctx, o, config, network.Lease()); err != nil {
		return fmt.Errorf("packet rules: %w", err)
	}
	own := network.Lease()
	if err := manager.HandleSubnetFile(o.subnetFile, config, o.masquerade, own.Subnet, own.IPv6Subnet, network.MTU()); err != nil {
		return fmt.Errorf("subnet file %s: %w", o.subnetFile, err)
	}
	klog.Infof("subnet %s on %s, backend %s", own.Subnet, external.Iface.Name, config.BackendType)
	tasks.Go(func() { network.Run(ctx) })
	return manager.CompleteLease(ctx, own, tasks)
}

func main() {
	o := parse()
	if o.version {
		fmt.Println(version)
		return
	}
	if !o.kubeSubnet {
		klog.Exit("this flanneld takes subnets from the Kubernetes API only")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.healthzPort > 0 {
		go serveHealth(o)
	}
	var tasks sync.WaitGroup
	err := run(ctx, o, &tasks)
	if err != nil && !errors.Is(err, context.Canceled) {
		klog.Exit(err)
	}
	// Rules and routes stay when the process ends: pods keep their network over a restart.
	tasks.Wait()
}
